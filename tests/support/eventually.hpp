// Waits for conditions instead of for time.
#pragma once

#include <chrono>
#include <thread>

namespace outbox::test {

/// Polls until `condition()` holds. Returns false if it does not hold within the limit, which is
/// generous, because time must not decide a test.
template <class Condition>
[[nodiscard]] bool eventually(Condition condition,
                              std::chrono::milliseconds limit = std::chrono::seconds(120)) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace outbox::test
