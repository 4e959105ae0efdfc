#include "base/supervisor.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace outbox {
namespace {

std::string take_variable(const char* name) {
  const char* const value = std::getenv(name);
  std::string taken = value == nullptr ? "" : value;
  (void)::unsetenv(name);
  return taken;
}

/// An abstract address, which begins with '@' in the variable, begins with NUL.
std::string to_address(std::string path) {
  if (path.starts_with('@')) path.front() = '\0';
  const bool usable = path.size() < sizeof(sockaddr_un::sun_path);
  return usable ? path : "";
}

std::optional<std::chrono::milliseconds> parse_watchdog(const std::string& us) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(us.data(), us.data() + us.size(), value);
  if (us.empty() || error != std::errc{} || value <= 0) return {};
  return std::chrono::milliseconds(std::max<std::int64_t>(value / 1000, 1));
}

}  // namespace

Supervisor::Supervisor()
    : address_(to_address(take_variable("NOTIFY_SOCKET"))),
      watchdog_(parse_watchdog(take_variable("WATCHDOG_USEC"))) {
  if (!address_.empty()) socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

Supervisor::~Supervisor() {
  if (socket_ >= 0) ::close(socket_);
}

void Supervisor::tell(const std::string& message) const {
  if (socket_ < 0) return;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, address_.data(), address_.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  // Nothing follows if systemd does not hear it: then its own time limits decide.
  (void)::sendto(socket_, message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                 reinterpret_cast<const sockaddr*>(&to), size);
}

void Supervisor::ready(std::string_view status) const {
  tell("READY=1\nSTATUS=" + std::string(status));
}

void Supervisor::stopping() const { tell("STOPPING=1\nSTATUS=stopping"); }

void Supervisor::alive() const {
  if (watchdog_) tell("WATCHDOG=1");
}

void Supervisor::wait(const Signals& signals, const std::function<bool()>& lives) const {
  if (!watchdog_) return signals.wait();
  // Twice as often as it must be, as sd_watchdog_enabled(3) recommends, and once more.
  const auto pause = std::max(*watchdog_ / 3, std::chrono::milliseconds(1));
  do {
    if (lives()) alive();
  } while (!signals.wait_for(pause));
}

}  // namespace outbox
