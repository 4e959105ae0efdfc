// A receiver of webhooks on loopback that answers at once. It speaks HTTP/1.1, keeps connections,
// and has one thread.
#pragma once

#include <map>
#include <stop_token>
#include <string>
#include <thread>

namespace outbox::bench {

class Receiver {
 public:
  /// Answers 422 to a request whose headers contain `bad`, 200 to all others. Throws Exception.
  explicit Receiver(std::string bad);
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;
  ~Receiver();

  [[nodiscard]] std::string url() const;

 private:
  void run(const std::stop_token& stop);
  void accept_one();
  void read_from(int socket);
  [[nodiscard]] std::string answers_to(std::string& received) const;

  const std::string bad_;
  int listening_{-1};
  int epoll_{-1};
  std::map<int, std::string> connections_;  ///< The bytes received that are not answered yet.
  std::jthread thread_;
};

}  // namespace outbox::bench
