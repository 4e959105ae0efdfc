// Tells a sink that a socket of its client became ready, for clients without a thread of their own
// (hiredis, librabbitmq). Only the relay's thread uses the client itself:
//
//   watch_.arm(socket, {.write = client.has_unsent()});   // at the end of send() and receive()
//
// A protocol with heartbeats has work to do while nothing happens: with `every`, `ready` is also
// called whenever this much time passed without a call.
//
// Threads: arm() and forget() on the relay's thread; `ready` is called on a thread of the watch,
//          once per arm() and for `every`.
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

  /// Must precede the first arm(). Idempotent. Fails if no descriptors or threads are left.
  [[nodiscard]] Status start();

  struct Interest {
    bool write{false};  ///< Also waits for room to write.
  };
  /// Calls `ready` once when the socket is readable, failed or closed. Replaces its earlier arm().
  void arm(int socket, Interest interest);
  /// Must precede the close of the socket, whose number another one may get.
  void forget(int socket) noexcept;

 private:
  void run();

  const std::function<void()> ready_;
  const std::optional<std::chrono::milliseconds> every_;
  int epoll_{-1};
  int stop_{-1};  ///< An eventfd.
  std::jthread thread_;
};

}  // namespace outbox::sink
