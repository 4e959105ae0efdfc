// A client of the HTTP server, and its socket.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "http/request_reader.hpp"
#include "http/tls.hpp"

namespace outbox::http {

/// Closes a socket.
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

/// A client. It reads a request, waits for the handler, writes the response, and begins again.
struct Connection {
  using TimePoint = std::chrono::steady_clock::time_point;
  enum class State : std::uint8_t { reading, answering, writing };

  Connection(Socket its_socket, std::string its_peer, const RequestLimits& limits, TimePoint until)
      : socket(std::move(its_socket)), peer(std::move(its_peer)), reader(limits), by(until) {}

  [[nodiscard]] std::size_t buffered() const { return reader.size() + out.size(); }

  Socket socket;
  std::unique_ptr<TlsStream> tls{};  ///< Not set for a connection without TLS.
  /// TLS has to write before it can read on, or to read before it can write on.
  Moved::Next tls_waits{Moved::Next::again};
  const std::string peer;
  RequestReader reader;
  TimePoint by;               ///< It is closed then.
  bool request_begun{false};  ///< The time for the request runs.
  State state{State::reading};
  std::string out{};
  std::size_t written{0};
  bool closes{false};  ///< After what is being written.
};

}  // namespace outbox::http
