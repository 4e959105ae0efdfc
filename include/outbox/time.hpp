// outbox/time.hpp: lengths of time and points in time, as fine as any clock of ours.
//
// Threads: values; Const methods from any thread.
// Lifetime: values.
// Errors: none.
#pragma once

#include <chrono>
#include <vector>

namespace outbox {

using Duration = std::chrono::nanoseconds;
/// By the clock of the store, UTC.
using Timestamp = std::chrono::sys_time<std::chrono::microseconds>;

/// The pauses between attempts, in their order: {std::chrono::seconds(10),
/// std::chrono::minutes(1)}.
class Delays : public std::vector<std::chrono::milliseconds> {
 public:
  using vector::vector;
  /// {"10s", "1min"} would be a pair of iterators.
  Delays(const char* first, const char* second) = delete;
};

}  // namespace outbox
