#include "console/browser.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "http/address.hpp"

namespace outbox::console {
namespace {

/// The host without ":8484"; "[::1]" keeps its colons.
std::string_view without_port(std::string_view host) {
  const auto colon = host.rfind(':');
  const bool has_port = colon != std::string_view::npos && host.find(']', colon) == host.npos;
  return has_port ? host.substr(0, colon) : host;
}

bool is_allowed(const std::string& host, const Hosts& hosts) {
  if (hosts.loopback && http::is_loopback_host(host)) return true;
  return std::any_of(hosts.names.begin(), hosts.names.end(), [&](const std::string& one) {
    return equal_ignoring_case(one, host) || equal_ignoring_case(one, without_port(host));
  });
}

/// Whether the page that sends the request is ours. Programs send neither header.
bool is_own_page(const Headers& headers) {
  const std::string site = headers("Sec-Fetch-Site");
  if (!site.empty() && site != "same-origin" && site != "none") return false;
  const std::string origin = headers("Origin");
  if (origin.empty()) return true;
  const std::string host = headers("Host");
  return equal_ignoring_case(origin, "http://" + host) ||
         equal_ignoring_case(origin, "https://" + host);
}

}  // namespace

std::optional<Problem> check_origin(std::string_view method, const Headers& headers,
                                    const Hosts& hosts) {
  if (!is_allowed(headers("Host"), hosts))
    return Problem{.status = 403,
                   .title = "the Host header names a host that this console does not answer for",
                   .hint = "--host NAME allows it"};
  if (!is_own_page(headers))
    return Problem{.status = 403,
                   .title = "the request comes from a page of another site",
                   .hint = "use the console's own page, or a program"};
  if (method != "POST") return {};
  const std::string type = headers("Content-Type");
  const std::string media = type.substr(0, type.find(';'));
  if (!equal_ignoring_case(media, "application/json"))
    return Problem{.status = 415,
                   .title = "the body of a change is application/json",
                   .hint = "Content-Type: application/json"};
  if (headers("Outbox-Console") != "1")
    return Problem{.status = 403,
                   .title = "a change needs the header Outbox-Console",
                   .hint = "Outbox-Console: 1; no page of another site can send it"};
  return {};
}

std::span<const std::pair<const char*, const char*>> security_headers() {
  static constexpr std::array<std::pair<const char*, const char*>, 7> kHeaders{{
      {"Cache-Control", "no-store"},
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src "
       "'self'; base-uri 'none'; object-src 'none'; form-action 'self'; frame-ancestors 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Permissions-Policy", "camera=(), geolocation=(), microphone=()"},
  }};
  return kHeaders;
}

}  // namespace outbox::console
