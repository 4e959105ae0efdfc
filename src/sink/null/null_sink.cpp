#include "sink/null/null_sink.hpp"

namespace outbox::sink {

std::size_t NullSink::send(std::span<const Message> messages) {
  for (const Message& message : messages) taken_.push_back(message.token);
  return messages.size();
}

void NullSink::receive(std::vector<Outcome>& outcomes) {
  const std::size_t before = outcomes.size();
  outcomes.resize(before + taken_.size());
  for (std::size_t i = 0; i < taken_.size(); ++i) {
    outcomes[before + i].token = taken_[i];
    outcomes[before + i].kind = Outcome::Kind::acked;
  }
  taken_.clear();
}

SinkKind null_kind() {
  return make_kind<NoSettings>(
      {.name = "null",
       .help = "acks everything and keeps nothing",
       .make = [](NoSettings) -> Result<std::unique_ptr<Sink>> {
         return std::make_unique<NullSink>();
       },
       .inspect = [](NoSettings, const SubscriptionSpec&) -> Result<Inspection> {
         return Inspection{.destination = "nothing",
                           .acked = "it was dropped",
                           .duplicates = "never",
                           .order = "of nothing"};
       }});
}

}  // namespace outbox::sink
