// Named threads.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <thread>

namespace outbox {

/// Starts a thread whose name (the first 15 characters) shows in `top -H`. It is joined when
/// destroyed. The body must not throw.
[[nodiscard]] std::jthread start_thread(std::string name,
                                        std::function<void(std::stop_token)> body);

}  // namespace outbox
