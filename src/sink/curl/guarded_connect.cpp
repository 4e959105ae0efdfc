#include "sink/curl/guarded_connect.hpp"

#include <sys/socket.h>

#include <optional>

#include "sink/curl/handles.hpp"

namespace outbox::sink::curl {
namespace {

/// Empty: it may be connected to.
std::string refusal_of(const Guard& guard, const sockaddr& socket_address) {
  const auto address = Address::of(socket_address);
  if (!address) return "an address that is not of the internet";
  const auto what = guard.refuses(*address);
  return what ? address->text() + ", " + std::string(*what) : "";
}

curl_socket_t open_socket(void* data, curlsocktype /*purpose*/, curl_sockaddr* address) {
  auto& connect = *static_cast<GuardedConnect*>(data);
  if (connect.guard != nullptr) {
    std::string refusal = refusal_of(*connect.guard, address->addr);
    if (!refusal.empty()) {
      if (connect.refused.empty()) connect.refused = std::move(refusal);
      return CURL_SOCKET_BAD;  // libcurl tries the next address of the name
    }
  }
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

}  // namespace

void guard(CURL* easy, GuardedConnect& connect) {
  set(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
  set(easy, CURLOPT_OPENSOCKETDATA, static_cast<void*>(&connect));
}

}  // namespace outbox::sink::curl
