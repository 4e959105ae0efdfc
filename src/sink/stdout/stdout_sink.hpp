// Writes events as lines of JSON to standard output. See docs/sinks/stdout.md.
#pragma once

#include <unistd.h>

#include <deque>
#include <outbox/sink.hpp>
#include <string>
#include <vector>

#include "sink/kind.hpp"

namespace outbox::sink {

/// Writes to a descriptor that other processes share, so that it cannot be made non-blocking. Small
/// pieces are written when there is room, so that a reader that stops blocks only its subscription.
class StdoutSink final : public Sink {
 public:
  /// Writes to `file` and leaves it open.
  explicit StdoutSink(int file = STDOUT_FILENO) : file_(file) {}

  [[nodiscard]] SinkTraits traits() const noexcept override {
    return {.name = "stdout", .gapless = true};
  }
  [[nodiscard]] Status open() override;
  [[nodiscard]] std::size_t send(std::span<const Message> messages) override;
  void receive(std::vector<Outcome>& outcomes) override;
  void purge() override;
  void close() noexcept override {}

 private:
  struct Waiting {
    Token token{0};
    std::size_t end{0};  ///< The end of its line in lines_.
  };

  void write_some();
  [[nodiscard]] bool wait_for_room() const;
  void wrote(std::size_t bytes);
  void fail_all(Outcome::Kind first, const Error& error);

  int file_;
  bool whole_pieces_{false};  ///< Whether it is a regular file, which takes any amount at once.
  bool failed_{false};    ///< Whether a write failed since open(); nothing is written after that.
  bool mid_line_{false};  ///< Whether the last byte written did not end a line.
  bool cut_{false};       ///< Whether the rest of that line will not be written.
  std::string lines_;
  std::size_t written_{0};  ///< How much of lines_ is written.
  std::deque<Waiting> waiting_;
  std::vector<Outcome> ready_;
};

[[nodiscard]] SinkKind stdout_kind();

}  // namespace outbox::sink
