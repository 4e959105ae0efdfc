#include "base/error.hpp"

#include <cstdio>
#include <cstdlib>

namespace outbox {

std::string Error::text() const {
  std::string out = message;
  if (!origin.empty()) out += " [" + origin + "]";
  if (!hint.empty()) out += " (hint: " + hint + ")";
  return out;
}

const char* to_string(Errc code) noexcept {
  switch (code) {
    case Errc::invalid_argument: return "invalid_argument";
    case Errc::not_found: return "not_found";
    case Errc::already_exists: return "already_exists";
    case Errc::lease_lost: return "lease_lost";
    case Errc::not_in_transaction: return "not_in_transaction";
    case Errc::too_large: return "too_large";
    case Errc::permission_denied: return "permission_denied";
    case Errc::unsupported: return "unsupported";
    case Errc::unavailable: return "unavailable";
    case Errc::deadline_exceeded: return "deadline_exceeded";
    case Errc::cancelled: return "cancelled";
    case Errc::corrupt: return "corrupt";
    case Errc::internal: return "internal";
  }
  return "internal";
}

void die(const char* file, int line, const char* what) noexcept {
  (void)std::fprintf(stderr, "outbox: invariant broken: %s (%s:%d)\n", what, file, line);
  std::abort();
}

}  // namespace outbox
