#include "bench/receiver.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "base/thread.hpp"
#include "support/failure.hpp"

namespace outbox::bench {
namespace {

constexpr std::string_view kGood = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
constexpr std::string_view kBad = "HTTP/1.1 422 Unprocessable Entity\r\ncontent-length: 0\r\n\r\n";
constexpr int kLookMs = 50;

void watch(int epoll, int socket) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = socket;
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event);
}

/// The bytes of the headers and of the whole request; nullopt if it is not complete.
std::optional<std::pair<std::size_t, std::size_t>> first_request(std::string_view received) {
  constexpr std::string_view kLength = "\r\nContent-Length: ";
  const std::size_t end = received.find("\r\n\r\n");
  if (end == std::string_view::npos) return {};
  const std::size_t head = end + 4;
  std::size_t body = 0;
  if (const std::size_t at = received.substr(0, head).find(kLength); at != std::string_view::npos)
    body = std::strtoull(received.data() + at + kLength.size(), nullptr, 10);
  if (received.size() < head + body) return {};
  return std::pair(head, head + body);
}

}  // namespace

Receiver::Receiver(std::string bad) : bad_(std::move(bad)) {
  listening_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listening_, any, sizeof address) != 0 || ::listen(listening_, SOMAXCONN) != 0)
    test::give_up(Errc::unavailable, "no port on 127.0.0.1 can be listened on");
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  watch(epoll_, listening_);
  thread_ = start_thread("receiver", [this](const std::stop_token& stop) { run(stop); });
}

Receiver::~Receiver() {
  thread_ = {};
  for (const auto& [socket, received] : connections_) ::close(socket);
  ::close(epoll_);
  ::close(listening_);
}

std::string Receiver::url() const {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  ::getsockname(listening_, reinterpret_cast<sockaddr*>(&address), &length);
  return "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/events";
}

void Receiver::run(const std::stop_token& stop) {
  std::array<epoll_event, 64> events{};
  while (!stop.stop_requested()) {
    const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), kLookMs);
    for (int i = 0; i < count; ++i) {
      const int socket = events[static_cast<std::size_t>(i)].data.fd;
      socket == listening_ ? accept_one() : read_from(socket);
    }
  }
}

void Receiver::accept_one() {
  const int socket = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (socket < 0) return;
  const int yes = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  connections_[socket];
  watch(epoll_, socket);
}

void Receiver::read_from(int socket) {
  std::string& received = connections_[socket];
  std::array<char, 16384> bytes{};
  const ssize_t count = ::recv(socket, bytes.data(), bytes.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count > 0) received.append(bytes.data(), static_cast<std::size_t>(count));
  const std::string answers = answers_to(received);
  // A few hundred bytes always fit into the socket's buffer.
  const bool sent = ::send(socket, answers.data(), answers.size(), MSG_NOSIGNAL) >= 0;
  if (count > 0 && sent) return;
  connections_.erase(socket);
  ::close(socket);
}

std::string Receiver::answers_to(std::string& received) const {
  std::string answers;
  while (const auto request = first_request(received)) {
    const std::string_view head = std::string_view(received).substr(0, request->first);
    answers += head.find(bad_) == std::string_view::npos ? kGood : kBad;
    received.erase(0, request->second);
  }
  return answers;
}

}  // namespace outbox::bench
