// A sink whose sends may take long and belong to its own process, not to the owner of a lane: tasks (docs/design/tasks.md). Once the row
// of such a send is `running`, the sink writes what becomes of it.
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
  std::size_t attempts{0};  ///< Before this one.
  std::int64_t token{0};    ///< Of the row.
};

/// What the sink of a subscription is told before its first send.
struct RunRules {
  double share{1};  ///< Of the lanes of the subscription.
  std::vector<std::string>
      paused_types{};  ///< Of which the subscription has rows that must not run.
};

/// Implemented beside Sink. Called by the loop's thread.
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
  /// Whose name its rows bear.
  [[nodiscard]] virtual EventId worker() const = 0;
  /// True: the sink looks after it, and receive() never reports it. False: it has ended, or not begun; the outcome comes as any other.
  [[nodiscard]] virtual bool keep(Token token, const KeptRun& run) = 0;
  /// Rows that it kept have changed since the last call.
  [[nodiscard]] virtual bool rows_changed() = 0;
};

}  // namespace outbox::sink
