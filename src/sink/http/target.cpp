#include "sink/http/target.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "format/template_pieces.hpp"
#include "sink/curl/handles.hpp"

namespace outbox::sink::http {
namespace {

constexpr const char* kUrlField = "http.url";
constexpr const char* kUrlExample = "such as https://hooks.example.com/orders";
/// The length that RFC 9110, 4.1 recommends to support.
constexpr std::size_t kLongestUrl = 8000;

FieldError wrong(std::string what, std::string hint = kUrlExample) {
  return {kUrlField, std::move(what), std::move(hint)};
}

std::string read_part(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return {};
  std::string copy(text);
  curl_free(text);
  return copy;
}

bool has_illegal(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return c <= ' ' || c > '~'; });
}

/// Where the host begins; nullopt if the URL is not scheme://host. libcurl takes other numbers of
/// slashes too, and would look for the host behind them.
std::optional<std::size_t> begin_of_host(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos || scheme != url.find_first_of(":/?#")) return std::nullopt;
  const std::size_t host = scheme + 3;
  if (url.find_first_of("/?#\\", host) == host) return std::nullopt;
  return host;
}

/// Where scheme and host end.
std::size_t end_of_origin(std::string_view url) {
  return std::min(url.find_first_of("/?#", begin_of_host(url).value_or(0)), url.size());
}

/// Whether the path has a segment of dots, which makes it another path (RFC 3986, 5.2.4).
bool has_dot_segment(std::string_view url) {
  std::string_view path = url.substr(end_of_origin(url));
  path = path.substr(0, path.find('?'));
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::string_view segment = path.substr(0, path.find('/'));
    if (segment == "." || segment == "..") return true;
    path.remove_prefix(segment.size());
  }
  return false;
}

/// Encodes braces, which are not characters of a URL.
std::string without_braces(std::string_view text) {
  std::string out;
  for (const char c : text)
    out += c == '{' || c == '}' ? percent_encoded({&c, 1}, "") : std::string(1, c);
  return out;
}

tl::unexpected<Error> unfit(std::string what, std::string hint) {
  return fail(Errc::invalid_argument, "http: " + std::move(what), std::move(hint));
}

}  // namespace

/// The URL with a letter for each field.
std::string Target::example() const {
  std::string url;
  for (const Piece& piece : pieces_) url += piece.field ? "x" : piece.text;
  return url;
}

std::optional<Target> Target::parse(std::string_view url, bool allow_http, FieldErrors& errors) {
  auto pieces = format::template_pieces(kUrlField, url);
  if (!pieces) {
    errors.add(pieces.error());
    return std::nullopt;
  }
  Target target;
  bool in_path = true;
  for (auto& [text, field] : *pieces) {
    target.pieces_.push_back({.text = field ? std::move(text) : without_braces(text),
                              .field = std::move(field),
                              .in_path = in_path});
    const Piece& piece = target.pieces_.back();
    if (!piece.field && piece.text.find('?') != std::string::npos) in_path = false;
  }
  if (auto problem = target.read(allow_http)) {
    errors.add(std::move(*problem));
    return std::nullopt;
  }
  return target;
}

std::optional<FieldError> Target::read(bool allow_http) {
  const std::string url = example();
  if (!begin_of_host(url)) return wrong("does not begin with https:// and a host");
  const std::size_t origin_end = end_of_origin(url);
  std::size_t at = 0;
  for (const Piece& piece : pieces_) {
    if (piece.field && at < origin_end) {
      return wrong(
          "has a field in its scheme, host or port",
          "events must not decide to whom they go: make a subscription for each host, with match_headers or "
          "aggregate_types");
    }
    varies_ = varies_ || piece.field.has_value();
    at += piece.field ? 1 : piece.text.size();
  }
  if (has_illegal(url.substr(origin_end)))
    return wrong("has blanks or characters other than ASCII behind its host",
                 "percent-encode them (%20 for a blank)");
  const curl::Url parsed(curl_url());
  const CURLUcode code =
      curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), CURLU_NON_SUPPORT_SCHEME);
  if (code != CURLUE_OK) return wrong(fmt::format("is not a URL: {}", curl_url_strerror(code)));
  const std::string scheme = read_part(parsed.get(), CURLUPART_SCHEME);
  if (scheme == "http" && !allow_http) {
    return wrong("is not encrypted: others could read and change the events in transit",
                 "use https; inside a network that you trust set http.allow_http = true");
  }
  if (scheme != "https" && scheme != "http")
    return wrong("does not begin with https:// and a host");
  if (!read_part(parsed.get(), CURLUPART_USER).empty() ||
      !read_part(parsed.get(), CURLUPART_PASSWORD).empty())
    return wrong("has a user or a password",
                 "set http.username and http.password, or http.authorization");
  if (url.find('#') != std::string::npos)
    return wrong("has a fragment (#), which is never sent", "remove it");
  const std::string host = read_part(parsed.get(), CURLUPART_HOST);
  if (host.empty()) return wrong("has no host");
  encrypted_ = scheme == "https";
  is_loopback_ = host == "localhost" || host == "[::1]" || host.starts_with("127.");
  origin_ = fmt::format("{}://{}:{}", scheme, host,
                        read_part(parsed.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT));
  return std::nullopt;
}

Result<std::string> Target::url_for(const EventView& event, event::Arena& arena) const {
  std::string url;
  if (!varies_) {
    for (const Piece& piece : pieces_) url += piece.text;
    return url;
  }
  for (const Piece& piece : pieces_) {
    if (!piece.field) {
      url += piece.text;
      continue;
    }
    const std::string_view value = piece.field->render(event, arena);
    if (value.empty() && piece.in_path) {
      return unfit(fmt::format("the event has no value for {} in the path of http.url", piece.text),
                   "write |default:TEXT into the field, or filter such events out");
    }
    url += percent_encoded(value, kUnreserved);
  }
  if (has_dot_segment(url)) {
    return unfit("a value of the event would make . or .. a part of the path of http.url",
                 "choose another field; this event is at fault");
  }
  if (url.size() > kLongestUrl) {
    return unfit(
        fmt::format("the URL for this event has {} bytes, more than {}", url.size(), kLongestUrl),
        "choose a shorter field");
  }
  return url;
}

}  // namespace outbox::sink::http
