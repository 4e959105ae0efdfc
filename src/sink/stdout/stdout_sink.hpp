// Events as lines of JSON on standard output, for people and pipes. See docs/sinks/stdout.md.
#pragma once

#include <unistd.h>

#include <outbox/sink.hpp>
#include <string>
#include <vector>

#include "sink/kind.hpp"

namespace outbox::sink {

class StdoutSink final : public BatchSink {
 public:
  /// `file`: where to write; it stays open.
  explicit StdoutSink(int file = STDOUT_FILENO) : file_(file) {}

  [[nodiscard]] SinkTraits traits() const noexcept override {
    return {.name = "stdout", .gapless = true};
  }
  [[nodiscard]] Status open() override;
  void close() noexcept override {}

 protected:
  [[nodiscard]] std::size_t deliver(std::span<const Message> batch, Outcome& failure) override;

 private:
  int file_;
  bool failed_{false};  ///< Until open(): nothing is written behind a failure.
  bool torn_{false};    ///< The last line written has no end.
  std::string lines_;
  std::vector<std::size_t> ends_;
};

[[nodiscard]] Kind stdout_kind();

}  // namespace outbox::sink
