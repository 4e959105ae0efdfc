#include "sink/hiredis/settings.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

namespace outbox::sink::hiredis {
namespace {

constexpr std::uint16_t kPort = 6379;
constexpr Scheme kSchemes[] = {{"redis", kPort}, {"rediss", kPort}};

bool is_database(std::string_view path) {
  unsigned number = 0;
  const char* const end = path.data() + path.size();
  const auto [stop, error] = std::from_chars(path.data(), end, number);
  return path.empty() || (error == std::errc() && stop == end);
}

bool any_tls(const std::vector<Endpoint>& endpoints) {
  return std::any_of(endpoints.begin(), endpoints.end(),
                     [](const Endpoint& endpoint) { return endpoint.scheme == "rediss"; });
}

void check_waiting(const std::string& sink, const ServerSettings& settings, FieldErrors& errors) {
  if (settings.wait_replicas == 0 || 2 * settings.wait_timeout <= settings.deadline) return;
  errors.add({sink + ".wait_timeout", "is longer than half of " + sink + ".deadline",
              "while the server waits for its replicas it answers nothing else: raise deadline"});
}

}  // namespace

ServerOptions parse_options(const std::string& sink, const ServerSettings& settings,
                            const std::string& place, FieldErrors& errors) {
  const std::string url = sink + ".url";
  ServerOptions options{settings, parse_endpoints(url, settings.url, kSchemes, errors)};
  check_waiting(sink, settings, errors);
  if (options.endpoints.empty()) return options;
  for (const Endpoint& endpoint : options.endpoints) {
    if (!is_database(endpoint.path))
      errors.add({url, "has a path that is not the number of a database",
                  "redis://host:6379/0; " + place});
  }
  check_login(sink, settings.username, settings.password, options.endpoints, errors);
  check_tls(sink, settings.tls, errors);
  if (!any_tls(options.endpoints))
    check_no_tls(sink, settings.tls, "begin " + url + " with rediss://", errors);
  return options;
}

}  // namespace outbox::sink::hiredis
