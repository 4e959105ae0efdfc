#include "sink/endpoint.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/owned.hpp"
#include "base/text.hpp"

namespace outbox::sink {
namespace {

constexpr std::string_view kShape =
    "write scheme://user:password@host:port/path; percent-encode special characters in user and password (%40 for @)";

using Url = Owned<CURLU, curl_url_cleanup>;

std::string read_part(CURLU* url, CURLUPart part, unsigned flags) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return {};
  std::string copy(text);
  curl_free(text);
  return copy;
}

const Scheme* find(std::span<const Scheme> schemes, std::string_view name) {
  const auto found =
      std::find_if(schemes.begin(), schemes.end(), [&](const Scheme& s) { return s.name == name; });
  return found == schemes.end() ? nullptr : &*found;
}

std::string join_names(std::span<const Scheme> schemes) {
  std::string names;
  for (const Scheme& scheme : schemes)
    names += fmt::format("{}{}://", names.empty() ? "" : ", ", scheme.name);
  return names;
}

/// What is wrong with the address; empty if it is valid.
std::string parse_one(const std::string& text, std::span<const Scheme> schemes,
                      Endpoint& endpoint) {
  const Url url(curl_url());
  const CURLUcode code =
      curl_url_set(url.get(), CURLUPART_URL, text.c_str(), CURLU_NON_SUPPORT_SCHEME);
  if (code != CURLUE_OK) return fmt::format("is not an address: {}", curl_url_strerror(code));
  endpoint.scheme = read_part(url.get(), CURLUPART_SCHEME, 0);
  const Scheme* const scheme = find(schemes, endpoint.scheme);
  if (scheme == nullptr) return "does not begin with " + join_names(schemes);
  endpoint.username = read_part(url.get(), CURLUPART_USER, CURLU_URLDECODE);
  endpoint.password = read_part(url.get(), CURLUPART_PASSWORD, CURLU_URLDECODE);
  endpoint.host = read_part(url.get(), CURLUPART_HOST, 0);
  if (endpoint.host.empty()) return "has no host";
  if (endpoint.host.front() == '[')
    endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
  endpoint.port = scheme->default_port;
  if (const std::string port = read_part(url.get(), CURLUPART_PORT, 0); !port.empty())
    std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
  endpoint.path = read_part(url.get(), CURLUPART_PATH, CURLU_URLDECODE);
  if (endpoint.path.starts_with('/')) endpoint.path.erase(0, 1);
  if (!read_part(url.get(), CURLUPART_QUERY, 0).empty() ||
      !read_part(url.get(), CURLUPART_FRAGMENT, 0).empty())
    return "has parameters (?) or a fragment (#); there are settings for everything";
  return {};
}

}  // namespace

std::string Endpoint::shown() const {
  const bool v6 = host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}{}{}", scheme, v6 ? "[" : "", host, v6 ? "]" : "", port,
                     path.empty() ? "" : "/", path);
}

bool Endpoint::is_loopback() const {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

std::vector<Endpoint> parse_endpoints(const std::string& field, std::string_view text,
                                      std::span<const Scheme> schemes, FieldErrors& errors) {
  std::vector<Endpoint> endpoints;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    Endpoint endpoint;
    const std::string wrong =
        parse_one(std::string(trimmed(text.substr(0, comma))), schemes, endpoint);
    if (!wrong.empty()) {
      errors.add(
          {field, fmt::format("address {} {}", endpoints.size() + 1, wrong), std::string(kShape)});
      return {};
    }
    endpoints.push_back(std::move(endpoint));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return endpoints;
}

}  // namespace outbox::sink
