// The sockets of transfers, so that another thread can end what waits on them. While libcurl waits
// for the answer to a mail, or to QUIT, it ignores its multi handle and our deadline.
#pragma once

#include <curl/curl.h>

#include <set>

#include "base/mutex.hpp"

namespace outbox::sink::curl {

/// Threads: Any thread.
/// Lifetime: must outlive the connections, which libcurl keeps as long as the multi handle.
class Sockets {
 public:
  /// Keeps the sockets of the transfer from now on. They notice when the other machine is gone.
  void watch(CURL* easy);

  /// Ends reading, which libcurl takes for the end of the connection: it still says QUIT and does
  /// not wait for the answer.
  void stop_reading();
  /// Ends all connections and prevents new ones.
  void stop();

 private:
  static curl_socket_t open(void* data, curlsocktype purpose, curl_sockaddr* address);
  static int close(void* data, curl_socket_t socket);

  Mutex mutex_;
  std::set<curl_socket_t> sockets_ OUTBOX_GUARDED_BY(mutex_);
  bool stopped_ OUTBOX_GUARDED_BY(mutex_){false};
};

}  // namespace outbox::sink::curl
