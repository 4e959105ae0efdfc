// Writes events as lines of JSON to standard output. See docs/sinks/stdout.md.
#pragma once

#include <unistd.h>

#include <deque>
#include <outbox/sink.hpp>
#include <string>
#include <vector>

#include "sink/kind.hpp"

namespace outbox::sink {

/// The descriptor is shared with other processes, so it cannot be made non-blocking. It is written in small pieces when there is
/// room, so that a reader that stops reading blocks only its subscription.
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
    std::size_t end{0};  ///< Where its line ends in lines_.
  };

  void write_some();
  [[nodiscard]] bool wait_for_room() const;
  void wrote(std::size_t bytes);
  void fail_all(Outcome::Kind first, const Error& error);

  int file_;
  bool whole_pieces_{false};  ///< A regular file takes any amount at once.
  bool failed_{false};        ///< Until open(): nothing is written after a failure.
  bool mid_line_{false};      ///< The last byte written did not end a line.
  bool cut_{false};           ///< And the rest of that line will not be written.
  std::string lines_;
  std::size_t written_{0};  ///< Of lines_.
  std::deque<Waiting> waiting_;
  std::vector<Outcome> ready_;
};

[[nodiscard]] SinkKind stdout_kind();

}  // namespace outbox::sink
