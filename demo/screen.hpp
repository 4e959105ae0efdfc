// The texts that the demo shows.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include "demo/demo.hpp"
#include "support/judge.hpp"

namespace outbox::demo {

/// The first lines. `shop` and `destination` are the places of tables and delivered events.
[[nodiscard]] std::string introduction(const DemoOptions& options, const std::string& shop,
                                       const std::string& destination);

struct Progress {
  std::chrono::milliseconds elapsed{0};
  std::int64_t committed{0};
  std::int64_t rolled_back{0};
  std::int64_t delivered{0};
  int kills{0};
  int kills_planned{0};
  bool closing{false};  ///< Whether the shop is closed and waits for the rest to arrive.
};
/// The longest line that ProgressLine can write over: a terminal of 80 columns breaks a longer one
/// in two, and the indent takes two columns.
inline constexpr std::size_t kProgressWidth = 77;
/// The line, without the indent and the end of the line. Of a line that would be longer than
/// kProgressWidth, first the orders that were rolled back are left out, then the kills.
[[nodiscard]] std::string progress_line(const Progress& progress);

struct Outcome {
  test::Verdict verdict;
  std::int64_t rolled_back{0};
  std::int64_t stale{0};  ///< The number of statements without the last order.
  int kills{0};
  std::string destination;
  bool naive{false};
  bool tasks{false};
  bool interrupted{false};

  /// Whether an interruption kept messages from arriving, so that what is missing is not lost.
  [[nodiscard]] bool on_their_way() const;
  /// Whether a promise was broken. A dual write promises nothing.
  [[nodiscard]] bool broken() const;
};
/// The last table and what it means.
[[nodiscard]] std::string table(const DemoOptions& options, const Outcome& outcome);
/// The object {"committed": ..., "delivered": ..., "lost": ..., "ghosts": ..., "out_of_order": ...,
/// "duplicates": ..., "kills": ...}, with tasks also "stale".
[[nodiscard]] std::string json(const Outcome& outcome);

/// Shows the progress: on a terminal in one line, otherwise in a line every second. Only one thread
/// may use it.
class ProgressLine {
 public:
  /// With `quiet_off_terminal` nothing is shown unless `out` is a terminal.
  ProgressLine(std::FILE* out, bool quiet_off_terminal);

  void show(const Progress& progress);
  /// Keeps the last line and starts a new one.
  void finish();

 private:
  std::FILE* out_;
  bool terminal_;
  bool quiet_;
  bool open_{false};
  std::string last_;
  std::chrono::milliseconds shown_at_{-1'000'000};
};

}  // namespace outbox::demo
