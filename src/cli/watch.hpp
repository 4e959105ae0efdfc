// Showing something again and again, until a person has seen enough.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace outbox::cli {

struct WatchOptions {
  std::chrono::milliseconds interval{2000};
  std::string title{};     ///< Stands above on a screen.
  bool lines_only{false};  ///< Nothing but what `show` prints, as for programs.
};

/// Calls `show`, which prints as it would once, at each interval. On a terminal this stays in
/// place, and q ends it; elsewhere each is a block below its time. Returns when a signal or a key
/// ends it, or the reader of a pipe leaves. Exceptions of `show` pass through.
void watch(const WatchOptions& options, const std::function<void()>& show);

/// "2026-01-05T08:09:12Z" and a fraction.
[[nodiscard]] std::string time_now();

}  // namespace outbox::cli
