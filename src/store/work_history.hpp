// What relays and workers did, interval by interval (docs/design/history.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <span>
#include <string>
#include <vector>

#include "store/interface.hpp"

namespace outbox::store {

/// What a relay or worker did in an interval; or the sums of such rows.
struct HistoryRow {
  std::int32_t subscription{0};
  /// The type of the tasks; empty for all that the subscription delivered.
  std::string type{};
  std::int64_t delivered{0};
  std::int64_t failed{0};
  std::int64_t parked{0};
  std::int64_t dead{0};
  /// As DurationHistogram::counts. Zeros at the end may be missing.
  std::vector<std::int64_t> latency{};
  std::int64_t pending{0};    ///< Of the whole subscription. In a sum: the most at any time.
  std::int64_t oldest_us{0};  ///< The age of the oldest pending event; 0 if there is none.
};

/// The sum of the rows of a subscription and type in a time that begins at `at_us`.
struct HistoryPoint {
  std::string subscription{};  ///< The name.
  std::int64_t at_us{0};
  HistoryRow row{};
};

/// It is used by one thread at a time. All times are microseconds since 1970, UTC.
class WorkHistory : public Interface {
 public:
  /// The store's clock.
  [[nodiscard]] virtual Result<std::int64_t> now() = 0;
  /// Writes the rows of the interval that begins at `at_us`. Rows that are there already stay as
  /// they are, so the same rows may be written again.
  [[nodiscard]] virtual Status append(const EventId& who, std::int64_t at_us,
                                      std::span<const HistoryRow> rows) = 0;
  /// Adds up the rows since `since_us` in steps, which begin at multiples of `step_us`. Ordered by
  /// subscription, type and time. A step without rows is left out.
  [[nodiscard]] virtual Result<std::vector<HistoryPoint>> list(std::int64_t since_us,
                                                               std::int64_t step_us) = 0;
  /// Removes the oldest rows before this time: all, or somewhat more than `batch`. Returns how
  /// many.
  [[nodiscard]] virtual Result<std::size_t> remove(std::int64_t before_us, std::size_t batch) = 0;
};

}  // namespace outbox::store
