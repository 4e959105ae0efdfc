#include "sink/nats/reach.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include "base/error.hpp"
#include "base/owned.hpp"

namespace outbox::sink::nats {
namespace {

using Clock = std::chrono::steady_clock;

class Socket {
 public:
  explicit Socket(const addrinfo& address)
      : fd_(::socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
                     address.ai_protocol)) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int fd() const { return fd_; }

 private:
  const int fd_;
};

std::string words(int code) { return std::generic_category().message(code); }

/// Returns false if the limit passed first.
bool wait_for(int fd, short events, Clock::time_point until) {
  pollfd one{.fd = fd, .events = events, .revents = 0};
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    const int ready =
        ::poll(&one, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000)));
    if (ready != 0 && !(ready < 0 && errno == EINTR)) return true;
    if (ready == 0) return false;
  }
}

int socket_error(int fd) {
  int code = 0;
  socklen_t size = sizeof code;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) == 0 ? code : errno;
}

/// Why there is no NATS server; empty if there is one, which sends INFO first.
std::string try_address(const addrinfo& address, Clock::time_point until) {
  const Socket socket(address);
  if (socket.fd() < 0) return words(errno);
  if (::connect(socket.fd(), address.ai_addr, address.ai_addrlen) != 0 && errno != EINPROGRESS)
    return words(errno);
  if (!wait_for(socket.fd(), POLLOUT, until)) return "does not accept a connection";
  if (const int code = socket_error(socket.fd()); code != 0) return words(code);
  std::string start;
  while (start.size() < 4) {
    if (!wait_for(socket.fd(), POLLIN, until)) return "accepts a connection and does not answer";
    char bytes[4];
    const ssize_t count = ::recv(socket.fd(), bytes, sizeof bytes - start.size(), 0);
    if (count == 0) return "closes the connection at once";
    if (count < 0 && errno != EAGAIN && errno != EINTR) return words(errno);
    if (count > 0) start.append(bytes, static_cast<std::size_t>(count));
  }
  return start == "INFO" ? "" : "does not speak the protocol of NATS";
}

std::string numeric(const addrinfo& address) {
  char host[NI_MAXHOST] = "";
  (void)::getnameinfo(address.ai_addr, address.ai_addrlen, host, sizeof host, nullptr, 0,
                      NI_NUMERICHOST);
  return address.ai_family == AF_INET6 ? fmt::format("[{}]", host) : host;
}

}  // namespace

Result<std::string> reach(const Endpoint& server, Clock::time_point until) {
  const auto fails = [&](const std::string& why) {
    return fail(Errc::unavailable, Remedy::reconnect,
                fmt::format("nats: {}: {}", server.shown(), why),
                "check nats.url, the network, and that the server runs");
  };
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  const int code =
      ::getaddrinfo(server.host.c_str(), std::to_string(server.port).c_str(), &hints, &first);
  if (code != 0) return fails(::gai_strerror(code));
  const Owned<addrinfo, ::freeaddrinfo> owner(first);
  int left = 0;
  for (const addrinfo* address = first; address != nullptr; address = address->ai_next) ++left;
  std::string why;
  for (const addrinfo* address = first; address != nullptr; address = address->ai_next, --left) {
    const auto now = Clock::now();
    why = try_address(*address, now + (until - now) / left);
    if (why.empty()) return numeric(*address);
  }
  return fails(why);
}

}  // namespace outbox::sink::nats
