// How a wake-up waits: for the store's descriptor, for interrupt(), or for the time to pass.
#pragma once

#include <chrono>
#include <outbox/error.hpp>

#include "base/event_fd.hpp"

namespace outbox::store {

/// Returns when `interrupted` is signalled, when `fd` can be read (-1 stands for none), or at
/// `until`. Returns true if `interrupted` was signalled, and resets it.
[[nodiscard]] Result<bool> wait_for(const EventFd& interrupted, int fd,
                                    std::chrono::steady_clock::time_point until);

}  // namespace outbox::store
