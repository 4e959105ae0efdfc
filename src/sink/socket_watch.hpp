// Tells a sink that a socket of its client became ready, for clients without a thread of their own (hiredis, librabbitmq). The
// client itself is used by the relay's thread only:
//
//   watch_.arm(socket, {.write = client.has_unsent()});   // at the end of send() and receive()
//
// A protocol with heartbeats has things to do while nothing happens: with `every`, `ready` is also called
// whenever so much time has passed without a call.
//
// Threads: arm() and forget() on the relay's thread; `ready` is called on a thread of the watch, once per arm() apart from that.
// Lifetime: `ready` is not called after the destructor.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <outbox/error.hpp>
#include <thread>

namespace outbox::sink {

class SocketWatch {
 public:
  explicit SocketWatch(std::function<void()> ready,
                       std::optional<std::chrono::milliseconds> every = std::nullopt)
      : ready_(std::move(ready)), every_(every) {}
  SocketWatch(const SocketWatch&) = delete;
  SocketWatch& operator=(const SocketWatch&) = delete;
  SocketWatch(SocketWatch&&) = delete;
  SocketWatch& operator=(SocketWatch&&) = delete;
  ~SocketWatch();

  /// Before the first arm(). Idempotent. Fails when the system has no descriptors or threads left.
  [[nodiscard]] Status start();

  struct Interest {
    bool write{false};  ///< Also when it can be written to.
  };
  /// Calls `ready` once when the socket can be read, has failed or was closed by the peer. Replaces an earlier arm() of it.
  void arm(int socket, Interest interest);
  /// Before the socket is closed: its number may be given to another one.
  void forget(int socket) noexcept;

 private:
  void run();

  const std::function<void()> ready_;
  const std::optional<std::chrono::milliseconds> every_;
  int epoll_{-1};
  int stop_{-1};  ///< eventfd
  std::jthread thread_;
};

}  // namespace outbox::sink
