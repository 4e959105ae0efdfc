#include "support/tcp_gate.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

namespace outbox::test {
namespace {

/// How often a thread checks the mode.
constexpr int kLookMs = 10;

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
  std::atomic<bool> dead{false};  ///< Made or used during a black hole: forwards nothing any more.
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
    // Discards unsent data, so that the peer sees a reset.
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    (void)shutdown(client, SHUT_RDWR);
    (void)shutdown(server, SHUT_RDWR);
  }
};

TcpGate::TcpGate(int target)
    : target_(target), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener_, 64) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("the gate cannot listen");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::jthread([this](const std::stop_token& stop) { accept_all(stop); });
}

TcpGate::~TcpGate() {
  acceptor_.request_stop();
  acceptor_.join();
  const std::scoped_lock lock(mutex_);
  links_.clear();
  ::close(listener_);
}

void TcpGate::set(Mode mode) {
  const std::scoped_lock lock(mutex_);
  mode_ = mode;
  if (mode != Mode::blackhole) return;
  for (const auto& link : links_) link->dead = true;
}

void TcpGate::cut() {
  const std::scoped_lock lock(mutex_);
  for (const auto& link : links_) link->hang_up();
}

void TcpGate::accept_all(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (!readable(listener_)) continue;
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(target_);
    if (connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      ::close(server);
      ::close(client);
      continue;
    }
    ++connections_;
    const std::scoped_lock lock(mutex_);
    Link& link = *links_.emplace_back(std::make_unique<Link>(client, server));
    link.dead = mode_ == Mode::blackhole;
    link.up = std::jthread([this, &link](const std::stop_token& end) {
      forward(link, link.client, link.server, end);
    });
    link.down = std::jthread([this, &link](const std::stop_token& end) {
      forward(link, link.server, link.client, end);
    });
  }
}

void TcpGate::forward(Link& link, int from, int to, const std::stop_token& stop) {
  char buffer[16384];
  while (!stop.stop_requested()) {
    if (mode_ != Mode::open || link.dead) {
      std::this_thread::sleep_for(std::chrono::milliseconds(kLookMs));
      continue;
    }
    if (!readable(from)) continue;
    // Checked again after the wait: data that arrived meanwhile must not pass a closed gate.
    if (mode_ != Mode::open || link.dead) continue;
    const ssize_t count = ::recv(from, buffer, sizeof buffer, 0);
    if (count <= 0 || !write_all(to, buffer, count)) break;
  }
  (void)shutdown(to, SHUT_RDWR);
  (void)shutdown(from, SHUT_RDWR);
}

}  // namespace outbox::test
