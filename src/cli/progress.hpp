// The line on stderr that shows how far a long verb is.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace outbox::cli {

class Progress {
 public:
  enum class Show {
    never,
    automatic,  ///< When stderr is a terminal.
    always,     ///< A line every second, for logs.
  };

  /// `total_bytes`: of the input, when it is known; else 0.
  Progress(Show show, std::size_t total_bytes);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  Progress(Progress&&) = delete;
  Progress& operator=(Progress&&) = delete;
  ~Progress() { clear(); }

  /// Call as often as you like; it prints when it is time.
  void at(std::uint64_t events, std::size_t bytes);
  /// Takes the line away, before anything else is printed.
  void clear();
  [[nodiscard]] double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;

  bool terminal_;
  bool on_;
  std::size_t total_bytes_;
  Clock::time_point start_{Clock::now()};
  Clock::time_point shown_at_{start_};
  bool visible_{false};
};

}  // namespace outbox::cli
