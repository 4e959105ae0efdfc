#include "support/tcp_gate.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "base/hash.hpp"

namespace outbox::test {
namespace {

/// How often a thread checks the mode.
constexpr int kLookMs = 10;
/// How many bytes pass at once while the gate is slow.
constexpr std::size_t kSlowBytes = 256;

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool readable(int socket) {
  pollfd wanted{.fd = socket, .events = POLLIN, .revents = 0};
  return ::poll(&wanted, 1, kLookMs) > 0;
}

bool write_all(int socket, const char* bytes, ssize_t count) {
  while (count > 0) {
    const ssize_t written = ::send(socket, bytes, static_cast<std::size_t>(count), MSG_NOSIGNAL);
    if (written <= 0) return false;
    bytes += written;
    count -= written;
  }
  return true;
}

}  // namespace

struct TcpGate::Link {
  int client{-1};
  int server{-1};
  /// It was made or used during a black hole, and forwards nothing any more.
  std::atomic<bool> dead{false};
  std::atomic<bool> lacks_answers{false};
  std::jthread up;
  std::jthread down;

  Link(int client_socket, int server_socket) : client(client_socket), server(server_socket) {}
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  Link(Link&&) = delete;
  Link& operator=(Link&&) = delete;
  ~Link() {
    hang_up();
    up = {};
    down = {};
    ::close(client);
    ::close(server);
  }
  void hang_up() const {
    // This discards unsent data, so that the peer sees a reset.
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    (void)shutdown(client, SHUT_RDWR);
    (void)shutdown(server, SHUT_RDWR);
  }
};

TcpGate::TcpGate(int target, int port) : target_(target) {
  listen_on(port);
  acceptor_ = std::jthread([this](const std::stop_token& stop) { accept_all(stop); });
}

TcpGate::~TcpGate() {
  acceptor_.request_stop();
  acceptor_.join();
  const std::scoped_lock lock(mutex_);
  links_.clear();
  ::close(listener_);
}

void TcpGate::listen_on(int port) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int again = 1;
  (void)setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &again, sizeof again);
  sockaddr_in address = loopback(port);
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener_, 64) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("the gate cannot listen");
  }
  port_ = ntohs(address.sin_port);
}

void TcpGate::set(Mode mode) {
  const std::scoped_lock lock(mutex_);
  const Mode before = mode_.exchange(mode);
  if (before == Mode::refused && mode != Mode::refused) listen_on(port_);
  if (before != Mode::refused && mode == Mode::refused) ::close(listener_.exchange(-1));
  for (const auto& link : links_) {
    if (mode == Mode::blackhole) link->dead = true;
    if (mode == Mode::refused || (mode != Mode::answers_lost && link->lacks_answers))
      link->hang_up();
  }
}

void TcpGate::cut() {
  const std::scoped_lock lock(mutex_);
  for (const auto& link : links_) link->hang_up();
}

void TcpGate::accept_all(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const int listener = listener_;
    if (listener < 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(kLookMs));
    } else if (readable(listener)) {
      accept_one();
    }
  }
}

void TcpGate::accept_one() {
  const std::scoped_lock lock(mutex_);
  const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(target_);
  if (connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(server);
    ::close(client);
    return;
  }
  ++connections_;
  Link& link = *links_.emplace_back(std::make_unique<Link>(client, server));
  link.dead = mode_ == Mode::blackhole;
  link.up = std::jthread([this, &link](const std::stop_token& end) {
    forward(link, link.client, link.server, false, end);
  });
  link.down = std::jthread([this, &link](const std::stop_token& end) {
    forward(link, link.server, link.client, true, end);
  });
}

void TcpGate::forward(Link& link, int from, int to, bool down, const std::stop_token& stop) {
  std::uint64_t left = 0;
  while (!stop.stop_requested() && pass_on(link, from, to, down, left)) {
  }
  (void)shutdown(to, SHUT_RDWR);
  (void)shutdown(from, SHUT_RDWR);
}

/// Forwards once, if there is something. `left` is how many bytes are left until the connection is
/// cut; 0 if that is not determined. Returns false if the connection is over.
bool TcpGate::pass_on(Link& link, int from, int to, bool down, std::uint64_t& left) {
  char buffer[16384];
  const auto shut = [&] {
    const Mode mode = mode_;
    return mode == Mode::stalled || mode == Mode::blackhole || link.dead;
  };
  if (shut()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(kLookMs));
    return true;
  }
  if (!readable(from)) return true;
  // The gate is checked again after the wait, because data that arrived meanwhile must not pass a
  // closed gate.
  if (shut()) return true;
  const bool slow = mode_ == Mode::slow;
  const std::uint64_t most = cut_after_;
  if (most == 0) left = 0;
  if (most != 0 && left == 0) {
    static std::atomic<std::uint64_t> number{0};
    left = 1 + splitmix64(++number) % most;
  }
  const std::size_t wanted =
      std::min<std::size_t>(slow ? kSlowBytes : sizeof buffer, left == 0 ? sizeof buffer : left);
  const ssize_t count = ::recv(from, buffer, wanted, 0);
  if (count <= 0) return false;
  if (down && (mode_ == Mode::answers_lost || link.lacks_answers)) {
    link.lacks_answers = true;
    ++lost_answers_;
    return true;
  }
  if (!write_all(to, buffer, count)) return false;
  if (slow) std::this_thread::sleep_for(std::chrono::milliseconds(kLookMs));
  if (left == 0) return true;
  left -= static_cast<std::uint64_t>(count);
  if (left > 0) return true;
  ++cuts_;
  link.hang_up();
  return false;
}

}  // namespace outbox::test
