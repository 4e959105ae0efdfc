// Named threads.
#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>

namespace outbox {

/// Starts a thread whose name (the first 15 characters) shows in `top -H`. It is joined when
/// destroyed. The body must not throw.
[[nodiscard]] std::jthread start_thread(std::string name,
                                        std::function<void(std::stop_token)> body);

/// Sleeps for this long, or until a stop is requested.
void sleep_for(std::chrono::nanoseconds time, const std::stop_token& stop);

}  // namespace outbox
