// Writes events as lines of a JSONL file and acks them when they are on disk (docs/sinks/file.md).
#pragma once

#include <chrono>
#include <outbox/sink.hpp>
#include <string>
#include <vector>

#include "sink/file/line_file.hpp"
#include "sink/kind.hpp"

namespace outbox::sink {

struct FileOptions {
  std::string path;
  mode_t mode{0640};
  /// How long written lines may wait for a sync, so that one sync serves many batches. With 0 each
  /// batch is synced at once; with nullopt no line is synced, and the kernel's copy suffices.
  std::optional<std::chrono::nanoseconds> sync_after{std::chrono::nanoseconds(0)};
};

class FileSink final : public Sink {
 public:
  explicit FileSink(FileOptions options, const Disk& disk = Disk::real());

  [[nodiscard]] SinkTraits traits() const noexcept override {
    return {.name = "file", .gapless = true};
  }
  [[nodiscard]] Status open() override;
  [[nodiscard]] std::size_t send(std::span<const Message> messages) override;
  void receive(std::vector<Outcome>& outcomes) override;
  void purge() override;
  void close() noexcept override;

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  [[nodiscard]] Status follow_rotation();
  [[nodiscard]] std::size_t write_some(std::span<const Message> messages);
  void ack_if_durable();
  void sync();
  void resolve_written(Outcome::Kind kind, const Error& error);
  void refuse(const Message& message, Error error);

  const FileOptions options_;
  LineFile file_;
  bool failed_{false};  ///< Whether a write failed since open(); nothing is written after that.

  std::string lines_;
  std::vector<std::size_t> ends_;
  std::vector<Token> written_;  ///< The events whose lines are not synced.
  std::size_t written_bytes_{0};
  TimePoint oldest_{};  ///< When the first event of written_ was written.
  std::vector<Outcome> ready_;
};

[[nodiscard]] SinkKind file_kind();

}  // namespace outbox::sink
