// A door between a client and a server: open, stalled, black hole or shut. One thread per direction of a connection.
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
    open,     ///< Everything goes through.
    stalled,  ///< Nothing goes through; what is under way waits and goes on when the gate opens again.
    blackhole,  ///< Nothing goes through, ever again on the connections that exist; new ones are not answered.
  };

  /// Forwards to 127.0.0.1:`target`.
  explicit TcpGate(int target);
  TcpGate(const TcpGate&) = delete;
  TcpGate& operator=(const TcpGate&) = delete;
  TcpGate(TcpGate&&) = delete;
  TcpGate& operator=(TcpGate&&) = delete;
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
