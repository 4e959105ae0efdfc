// A dual write, as it is often written: the application talks to its database and to the client of
// a broker, and the client has a buffer. Nothing here is worse than in real programs: orders are
// handed over at once, and the buffer holds them for some milliseconds.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <vector>

#include "demo/demo.hpp"
#include "demo/order.hpp"
#include "support/destination.hpp"
#include "support/failure.hpp"

namespace outbox::demo {
namespace {

using Clock = std::chrono::steady_clock;

/// How long clients of brokers collect messages for a batch.
constexpr std::chrono::milliseconds kLinger{5};
constexpr std::size_t kMostTogether = 1000;
constexpr std::size_t kLongestOrder = 4096;

/// Forwards orders until the shop closes the socket.
void forward(int input, test::Destination& destination) {
  std::vector<test::Delivery> waiting;
  Clock::time_point send_at;
  for (bool open = true; open;) {
    pollfd ready{.fd = input, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, static_cast<int>(kLinger.count())) > 0) {
      std::array<char, kLongestOrder> text{};
      const ssize_t size = recv(input, text.data(), text.size(), 0);
      open = size > 0 || (size < 0 && (errno == EINTR || errno == EAGAIN));
      if (waiting.empty()) send_at = Clock::now() + kLinger;
      if (size > 0) waiting.push_back(delivered({text.data(), static_cast<std::size_t>(size)}));
    }
    if (open && waiting.size() < kMostTogether && Clock::now() < send_at) continue;
    for (const auto& order : waiting) destination.send(order.key, order.body);
    waiting.clear();
    destination.poll();
  }
  destination.flush();
}

}  // namespace

Status run_publisher(const std::string& destination) {
  return test::caught([&] { forward(STDIN_FILENO, *test::make_destination(destination)); });
}

}  // namespace outbox::demo
