// The sockets of transfers, so that another thread can end what waits on them. While libcurl waits for the answer to a whole mail, or to
// QUIT, it looks at nothing else: not at its multi handle, and not at a deadline of ours.
#pragma once

#include <curl/curl.h>

#include <set>

#include "base/mutex.hpp"

namespace outbox::sink::curl {

/// Threads: Any thread.
/// Lifetime: outlives the connections, which libcurl keeps as long as the multi handle.
class Sockets {
 public:
  /// From now on the sockets that the transfer opens are in here. They also find out when the other machine is gone.
  void watch(CURL* easy);

  /// Nothing more is read, which libcurl takes for the end of the connection: it still says QUIT, and does not wait for the answer.
  void stop_reading();
  /// Ends all connections, and lets no more be made.
  void stop();

 private:
  static curl_socket_t open(void* data, curlsocktype purpose, curl_sockaddr* address);
  static int close(void* data, curl_socket_t socket);

  Mutex mutex_;
  std::set<curl_socket_t> sockets_ OUTBOX_GUARDED_BY(mutex_);
  bool stopped_ OUTBOX_GUARDED_BY(mutex_){false};
};

}  // namespace outbox::sink::curl
