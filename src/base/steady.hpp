// The clock for how long something takes.
#pragma once

#include <chrono>

namespace outbox {

[[nodiscard]] inline std::chrono::steady_clock::time_point now_steady() {
  return std::chrono::steady_clock::now();
}

}  // namespace outbox
