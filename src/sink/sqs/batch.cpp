#include "sink/sqs/batch.hpp"

#include "event/json_write.hpp"

namespace outbox::sink::sqs {

void Batch::add(Entry entry) {
  bytes += entry.bytes;
  entries.push_back(std::move(entry));
}

std::string send_body(const Batch& batch, std::string_view queue_url) {
  constexpr std::size_t kAround = 32;
  std::size_t size = queue_url.size() + 2 * kAround;
  for (const Entry& entry : batch.entries) size += entry.members.size() + kAround;
  std::string body;
  body.reserve(size);
  body += R"({"QueueUrl":)";
  event::append_json_string(body, queue_url);
  body += R"(,"Entries":[)";
  for (std::size_t place = 0; place < batch.entries.size(); ++place) {
    if (place > 0) body += ',';
    body.append(R"({"Id":")").append(std::to_string(place)).append("\",");
    body.append(batch.entries[place].members).append("}");
  }
  return body += "]}";
}

std::pair<Batch, Batch> halves(Batch whole) {
  std::pair<Batch, Batch> both{{.queue = whole.queue}, {.queue = whole.queue}};
  const std::size_t middle = whole.entries.size() / 2;
  for (std::size_t place = 0; place < whole.entries.size(); ++place)
    (place < middle ? both.first : both.second).add(std::move(whole.entries[place]));
  return both;
}

}  // namespace outbox::sink::sqs
