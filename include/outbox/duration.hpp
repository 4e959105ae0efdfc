// outbox/duration.hpp: a length of time, as fine as any clock of ours.
//
// Threads: values; Const methods from any thread.
// Lifetime: values.
// Errors: none.
#pragma once

#include <chrono>

namespace outbox {

using Duration = std::chrono::nanoseconds;

}  // namespace outbox
