// outbox/time.hpp: lengths of time and points in time, as fine as any clock of ours.
//
// Threads: values; Const methods from any thread.
// Lifetime: values.
// Errors: none.
#pragma once

#include <chrono>

namespace outbox {

using Duration = std::chrono::nanoseconds;
/// By the clock of the store, UTC.
using Timestamp = std::chrono::sys_time<std::chrono::microseconds>;

}  // namespace outbox
