#include "sink/login_settings.hpp"

#include <algorithm>

namespace outbox::sink {

void check_login(const std::string& sink, const std::string& username, const std::string& password,
                 std::span<const Endpoint> endpoints, FieldErrors& errors) {
  if (!password.empty()) return;
  const std::string hint = "set " + sink + ".password";
  const auto lacks_password = [](const Endpoint& endpoint) { return endpoint.password.empty(); };
  if (!username.empty() && std::any_of(endpoints.begin(), endpoints.end(), lacks_password))
    errors.add({sink + ".username", "is given without a password", hint});
  for (const Endpoint& endpoint : endpoints) {
    if (!endpoint.username.empty() && lacks_password(endpoint))
      errors.add({sink + ".url", "has a username and no password", hint});
  }
}

}  // namespace outbox::sink
