// Reads a cold backlog ahead of the reader, on a connection of its own: an index scan waits for one
// block after the other, while a bitmap scan asks the disk for many at once. Measured: a cold
// backlog is drained at 0.57 of the rate of a warm one without reading ahead, and at 0.83 of it
// with reading ahead.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "store/postgres/ahead_plan.hpp"
#include "store/postgres/connection.hpp"

namespace outbox::store::postgres {

/// It never waits for an answer and never reports an error: when it cannot read ahead, the reader
/// is only slower. It is used by one thread at a time.
class ReadAhead {
 public:
  /// `connect` opens the connection when a backlog is large enough for the first time.
  explicit ReadAhead(std::function<Result<Connection>()> connect) : connect_(std::move(connect)) {}

  /// The reader stands at `position` in a pair that ends at `end`.
  void follow(std::int64_t position, std::int64_t end);
  [[nodiscard]] std::uint64_t statements() const {
    return connection_ ? connection_->statements() : 0;
  }

 private:
  [[nodiscard]] bool open();
  /// Whether the last statement has been answered.
  [[nodiscard]] bool is_free();
  void give_up();

  const std::function<Result<Connection>()> connect_;
  std::optional<Connection> connection_;
  AheadPlan plan_;
  bool failed_{false};
};

}  // namespace outbox::store::postgres
