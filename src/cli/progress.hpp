// The line on stderr that shows the progress of a long verb.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace outbox::cli {

class Progress {
 public:
  /// On a terminal one line that is overwritten, else a line every second. `total_bytes`: of the input; 0: not known.
  Progress(bool on, std::size_t total_bytes);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  /// May be called often; prints when it is time.
  void at(std::uint64_t events, std::size_t bytes);
  /// Removes the line; before anything else is printed.
  void clear();
  [[nodiscard]] double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;

  const bool on_;
  const bool terminal_;
  const std::size_t total_bytes_;
  Clock::time_point start_{Clock::now()};
  Clock::time_point shown_at_{start_};
  bool visible_{false};
};

}  // namespace outbox::cli
