// A sink whose sends may take long and belong to its own process, not to the owner of a lane: tasks
// (docs/design/tasks.md). Once the row of such a send is `running`, the sink writes its result.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <outbox/sink.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace outbox::sink {

/// A send whose row is written as `running`.
struct KeptRun {
  std::int32_t subscription{0};
  std::int64_t seq{0};
  EventId id{};
  std::size_t attempts{0};  ///< Attempts before this one.
  std::int64_t token{0};    ///< The fencing token of the row.
};

/// What the sink of a subscription is told before its first send.
struct RunRules {
  double share{1};  ///< The share of the subscription's lanes.
  /// Types of which the subscription has rows that must not run.
  std::vector<std::string> paused_types{};
};

/// Implemented by a class beside Sink. The loop's thread calls it.
class RunOwner {
 public:
  RunOwner() = default;
  RunOwner(const RunOwner&) = delete;
  RunOwner& operator=(const RunOwner&) = delete;
  RunOwner(RunOwner&&) = delete;
  RunOwner& operator=(RunOwner&&) = delete;
  virtual ~RunOwner() = default;

  virtual void follow(const RunRules& rules) = 0;
  /// How long a send runs before it gets a row.
  [[nodiscard]] virtual std::chrono::milliseconds row_after() const = 0;
  /// Whether the sends of a type get their rows at once.
  [[nodiscard]] virtual bool is_slow(std::string_view event_type) const = 0;
  /// The worker that the rows name.
  [[nodiscard]] virtual EventId worker() const = 0;
  /// Returns true if the sink looks after the run, which receive() then never reports. Returns
  /// false if the run has ended or not begun; its outcome comes like any other.
  [[nodiscard]] virtual bool keep(Token token, const KeptRun& run) = 0;
  /// Whether rows that the sink kept have changed since the last call.
  [[nodiscard]] virtual bool rows_changed() = 0;
};

}  // namespace outbox::sink
