// Shows something again and again, until a person has seen enough.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace outbox::cli {

struct WatchOptions {
  std::chrono::milliseconds interval{2000};
  std::string title{};     ///< Stands above the text on a screen.
  bool lines_only{false};  ///< Whether only what `show` prints is written, as for programs.
};

/// Calls `show` at each interval, which prints as it would once. On a terminal the text stays in
/// place, and q ends it; elsewhere each text is a block below its time. Returns when a signal or a
/// key ends it, or when the reader of a pipe leaves. Exceptions of `show` pass through.
void watch(const WatchOptions& options, const std::function<void()>& show);

/// The time now, such as "2026-01-05T08:09:12Z", with a fraction.
[[nodiscard]] std::string time_now();

}  // namespace outbox::cli
