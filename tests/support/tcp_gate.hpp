// A TCP proxy that does to connections what bad networks do. It has one thread for each direction
// of a connection.
#pragma once

#include <atomic>
#include <cstdint>
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
    stalled,    ///< Forwards nothing until the gate is open again, and then all data.
    blackhole,  ///< Never forwards anything again on existing connections; new ones get no answer.
    refused,    ///< Does not listen; existing connections are reset.
    /// Forwards to the server, and nothing back. These connections are reset when the mode changes.
    answers_lost,
    slow,  ///< Forwards a few bytes at a time, about 25 kB a second in each direction.
  };

  /// Forwards to 127.0.0.1:`target`. It listens on `port`, or on any port if that is 0.
  explicit TcpGate(int target, int port = 0);
  TcpGate(const TcpGate&) = delete;
  TcpGate& operator=(const TcpGate&) = delete;
  TcpGate(TcpGate&&) = delete;
  TcpGate& operator=(TcpGate&&) = delete;
  ~TcpGate();

  [[nodiscard]] int port() const { return port_; }
  void set(Mode mode);
  /// Resets every connection.
  void cut();
  /// From now on each connection, including existing ones, is reset once it has forwarded a number
  /// of further bytes in one direction. The number differs between connections and is at most
  /// `most`. With 0 this ends.
  void cut_after(std::uint64_t most) { cut_after_ = most; }
  /// How many connections were made so far.
  [[nodiscard]] int connections() const { return connections_.load(); }
  /// How many connections were reset because of cut_after().
  [[nodiscard]] int cuts() const { return cuts_.load(); }

  /// How often something came back from the server and was not forwarded.
  [[nodiscard]] int lost_answers() const { return lost_answers_.load(); }

 private:
  struct Link;
  void listen_on(int port);
  void accept_all(const std::stop_token& stop);
  void accept_one();
  void forward(Link& link, int from, int to, bool down, const std::stop_token& stop);
  bool pass_on(Link& link, int from, int to, bool down, std::uint64_t& left);

  const int target_;
  std::atomic<int> listener_{-1};
  int port_{0};
  std::atomic<Mode> mode_{Mode::open};
  std::atomic<std::uint64_t> cut_after_{0};
  std::atomic<int> connections_{0};
  std::atomic<int> cuts_{0};
  std::atomic<int> lost_answers_{0};
  std::mutex mutex_;
  std::list<std::unique_ptr<Link>> links_;
  std::jthread acceptor_;
};

}  // namespace outbox::test
