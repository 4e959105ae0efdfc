// Tells systemd how the service is (sd_notify(3): a unit with Type=notify). Without systemd nothing
// is told.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/signals.hpp"

namespace outbox {

/// One thread uses it.
class Supervisor {
 public:
  /// Takes the variables NOTIFY_SOCKET and WATCHDOG_USEC out of the environment, so that programs
  /// that this one runs do not speak in its name. Make it before threads start.
  Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  Supervisor(Supervisor&&) = delete;
  Supervisor& operator=(Supervisor&&) = delete;
  ~Supervisor();

  /// The service has begun; `status` stands in `systemctl status` and may change.
  void ready(std::string_view status) const;
  /// The service ends. From now on there is no watchdog.
  void stopping() const;
  /// The watchdog waits for this (WatchdogSec). It does nothing if nobody waits.
  void alive() const;
  /// Waits for the first signal, and says meanwhile that the service is alive, as long as `lives`
  /// returns true. It is the caller's thread that says so: one that hangs says nothing.
  void wait(const Signals& signals, const std::function<bool()>& lives) const;

 private:
  void tell(const std::string& message) const;

  int socket_{-1};
  std::string address_;  ///< As of sockaddr_un.
  std::optional<std::chrono::milliseconds> watchdog_;
};

}  // namespace outbox
