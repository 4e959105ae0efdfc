// Ctrl-C and its kin, counted, while one of these lives. Only one at a time.
#pragma once

#include <array>
#include <chrono>
#include <csignal>

namespace outbox::demo {

class Interrupt {
 public:
  Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  Interrupt(Interrupt&&) = delete;
  Interrupt& operator=(Interrupt&&) = delete;
  /// Puts the old handlers back.
  ~Interrupt();

  /// Returns after `longest`, or at once when a signal comes. How many came so far.
  int wait(std::chrono::milliseconds longest) const;
  [[nodiscard]] int count() const;

 private:
  static constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> old_{};
};

}  // namespace outbox::demo
