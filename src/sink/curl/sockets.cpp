#include "sink/curl/sockets.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sink/curl/handles.hpp"

namespace outbox::sink::curl {
namespace {

/// How long the other machine may show no sign of life. Its answer may take longer.
constexpr unsigned kGoneAfterMs = 30'000;
constexpr long kProbeAfterSeconds = 15;
constexpr long kProbeEverySeconds = 5;

}  // namespace

void Sockets::watch(CURL* easy) {
  set(easy, CURLOPT_OPENSOCKETFUNCTION, &Sockets::open);
  set(easy, CURLOPT_OPENSOCKETDATA, static_cast<void*>(this));
  set(easy, CURLOPT_CLOSESOCKETFUNCTION, &Sockets::close);
  set(easy, CURLOPT_CLOSESOCKETDATA, static_cast<void*>(this));
  set(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  set(easy, CURLOPT_TCP_KEEPIDLE, kProbeAfterSeconds);
  set(easy, CURLOPT_TCP_KEEPINTVL, kProbeEverySeconds);
}

curl_socket_t Sockets::open(void* data, curlsocktype /*purpose*/, curl_sockaddr* address) {
  auto& self = *static_cast<Sockets*>(data);
  const MutexLock lock(self.mutex_);
  if (self.stopped_) return CURL_SOCKET_BAD;
  const int made = ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  if (made == -1) return CURL_SOCKET_BAD;
  // Also decides when unanswered probes end the connection (tcp(7)). Where the option is missing,
  // only the deadline ends it.
  (void)::setsockopt(made, IPPROTO_TCP, TCP_USER_TIMEOUT, &kGoneAfterMs, sizeof kGoneAfterMs);
  self.sockets_.insert(made);
  return made;
}

/// Closes under the lock, so that no other file gets the number while stop() uses it.
int Sockets::close(void* data, curl_socket_t socket) {
  auto& self = *static_cast<Sockets*>(data);
  const MutexLock lock(self.mutex_);
  self.sockets_.erase(socket);
  return ::close(socket);
}

void Sockets::stop_reading() {
  const MutexLock lock(mutex_);
  for (const curl_socket_t socket : sockets_) (void)::shutdown(socket, SHUT_RD);
}

void Sockets::stop() {
  const MutexLock lock(mutex_);
  stopped_ = true;
  for (const curl_socket_t socket : sockets_) (void)::shutdown(socket, SHUT_RDWR);
}

}  // namespace outbox::sink::curl
