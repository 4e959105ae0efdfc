// What a browser says about where a request comes from, and what it is told about the page: so that
// pages of other sites can neither read nor change anything (OWASP, Cross-Site Request Forgery
// Prevention; ASVS 5.0, 3.4 and 3.5). Pure.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "console/problem.hpp"

namespace outbox::console {

struct Hosts {
  bool loopback{true};               ///< The names of this machine are allowed.
  std::vector<std::string> names{};  ///< Others; one without a port has any.
};

/// Returns the value of a header of the request, or "".
using Headers = std::function<std::string(const char* name)>;

/// Why the request is refused; nullopt if it is not.
[[nodiscard]] std::optional<Problem> check_origin(std::string_view method, const Headers& headers,
                                                  const Hosts& hosts);

/// The headers of every response.
[[nodiscard]] std::span<const std::pair<const char*, const char*>> security_headers();

}  // namespace outbox::console
