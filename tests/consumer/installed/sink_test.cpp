// A sink of a service's own that appends to memory, under the suite that the sinks of outbox pass.
#include <memory>
#include <outbox/sink.hpp>
#include <outbox/sink_conformance.hpp>
#include <string>
#include <vector>

namespace {

using outbox::conformance::Arrived;
using outbox::conformance::Harness;

struct Board {
  std::vector<Arrived> messages;
  std::string broken;  // the id of a message that it does not take
};

class BoardSink final : public outbox::BatchSink {
 public:
  explicit BoardSink(std::shared_ptr<Board> board) : board_(std::move(board)) {}
  [[nodiscard]] outbox::SinkTraits traits() const noexcept override { return {}; }
  [[nodiscard]] outbox::Status open() override { return {}; }
  void close() noexcept override {}

 protected:
  [[nodiscard]] std::size_t deliver(std::span<const outbox::Message> batch,
                                    outbox::Outcome& failure) override {
    std::size_t done = 0;
    for (const outbox::Message& message : batch) {
      const std::string id = message.event->id.str();
      if (id == board_->broken) {
        failure.kind = outbox::Outcome::Kind::retry;
        failure.error.message = "the board is full";
        return done;
      }
      std::optional<std::string> key;
      if (message.key) key.emplace(*message.key);
      board_->messages.push_back({.id = id, .key = key, .body = std::string(message.body)});
      ++done;
    }
    return done;
  }

 private:
  const std::shared_ptr<Board> board_;
};

class OnBoard final : public Harness {
 public:
  [[nodiscard]] std::unique_ptr<outbox::Sink> make() override {
    return std::make_unique<BoardSink>(board_);
  }
  [[nodiscard]] std::vector<Arrived> delivered() override { return board_->messages; }
  void spoil(outbox::conformance::Load& load, std::size_t place) override {
    board_->broken = load.item(place).id_text;
  }
  void repair() override { board_->broken.clear(); }

 private:
  const std::shared_ptr<Board> board_ = std::make_shared<Board>();
};

}  // namespace

std::vector<outbox::conformance::HarnessKind> outbox::conformance::harness_kinds() {
  return {{.name = "board",
           .make = []() -> std::unique_ptr<Harness> { return std::make_unique<OnBoard>(); },
           .can_fail = true}};
}
