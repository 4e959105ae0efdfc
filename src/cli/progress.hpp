// The line on stderr that shows the progress of a long verb. It appears only on a terminal, where
// it is overwritten, unless it is asked for.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>

namespace outbox::cli {

class Progress {
 public:
  enum class Wanted { on_terminal, always, never };

  /// `total_bytes` is the size of the input; 0 if it is not known. `what` stands before the
  /// numbers. `always` prints a line every second if there is no terminal.
  explicit Progress(Wanted wanted, std::size_t total_bytes = 0, std::string what = {});
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  /// May be called often; prints when it is time.
  void at(std::uint64_t events, std::size_t bytes = 0);
  /// Prints another text when it is time.
  void say(const std::string& text);
  /// Removes the line. Must be called before anything else is printed.
  void clear();
  [[nodiscard]] double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;

  /// Whether it is time to print. If so, it is not time again for a while.
  bool is_due();
  void print(const std::string& line);

  const bool terminal_;
  const bool on_;
  const std::size_t total_bytes_;
  const std::string what_;
  Clock::time_point start_{Clock::now()};
  Clock::time_point shown_at_{start_};
  bool visible_{false};
};

/// Shows how long something has taken that cannot say how far it is, from the first second on.
class Waiting {
 public:
  explicit Waiting(std::string what);
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() = default;

 private:
  std::jthread thread_;
};

}  // namespace outbox::cli
