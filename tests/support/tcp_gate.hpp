// A TCP proxy that can stop forwarding. One thread per direction of a connection.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace outbox::test {

class TcpGate {
 public:
  enum class Mode {
    open,       ///< Forwards everything.
    stalled,    ///< Forwards nothing until it is open again; then all data.
    blackhole,  ///< Forwards nothing, on existing connections never again; new ones get no answer.
  };

  /// Forwards to 127.0.0.1:`target`.
  explicit TcpGate(int target);
  TcpGate(const TcpGate&) = delete;
  TcpGate& operator=(const TcpGate&) = delete;
  ~TcpGate();

  [[nodiscard]] int port() const { return port_; }
  void set(Mode mode);
  /// Resets every connection.
  void cut();
  /// Connections made so far.
  [[nodiscard]] int connections() const { return connections_.load(); }

 private:
  struct Link;
  void accept_all(const std::stop_token& stop);
  void forward(Link& link, int from, int to, const std::stop_token& stop);

  const int target_;
  int listener_{-1};
  int port_{0};
  std::atomic<Mode> mode_{Mode::open};
  std::atomic<int> connections_{0};
  std::mutex mutex_;
  std::list<std::unique_ptr<Link>> links_;
  std::jthread acceptor_;
};

}  // namespace outbox::test
