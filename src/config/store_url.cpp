#include "config/store_url.hpp"

#include <algorithm>
#include <string_view>

#include "base/error.hpp"
#include "config/reference.hpp"
#include "event/ascii.hpp"

namespace outbox::config {
namespace {

constexpr auto npos = std::string_view::npos;
constexpr std::size_t kLongestSchema = 63;
constexpr const char* kForms = "postgresql://USER@HOST/DATABASE, or sqlite:PATH";
constexpr const char* kEncode =
    "percent-encode it: %40 for @, %2F for /, %3F for ?, %25 for %, %20 for a blank; what comes from ${env:NAME} or "
    "${file:PATH} is encoded by itself";

bool is_hex(char c) {
  return event::is_digit(c) || (event::to_lower(c) >= 'a' && event::to_lower(c) <= 'f');
}

bool is_postgres_url(std::string_view text) {
  return text.starts_with("postgresql://") || text.starts_with("postgres://");
}

/// "host=db password=x"
bool is_parameters(std::string_view text) {
  return text.find('=') != npos && text.find("://") == npos && !text.starts_with("sqlite:");
}

/// "shop.db", which is a SQLite file, too.
bool is_file(std::string_view text) {
  const auto ends = [&](std::string_view with) { return text.ends_with(with); };
  return text.find("://") == npos && (ends(".db") || ends(".sqlite") || ends(".sqlite3"));
}

std::string encoded(std::string_view value, std::string_view plain) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  constexpr std::string_view kUnreserved = "-._~";
  std::string out;
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (event::is_alnum(c) || kUnreserved.find(c) != npos || plain.find(c) != npos) {
      out += c;
    } else {
      out.append("%").append(1, kHex[byte >> 4U]).append(1, kHex[byte & 15U]);
    }
  }
  return out;
}

std::string escaped(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string without_references(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t begin = text.find("${");
    out += text.substr(0, begin);
    if (begin == npos) return out;
    const std::size_t end = text.find('}', begin);
    if (end == npos) return out;
    text.remove_prefix(end + 1);
  }
}

/// A value as it may stand between `before` and `after` in a URL.
std::string fit_url(std::string_view before, std::string_view after, std::string_view value) {
  const std::string_view authority = before.substr(before.find("://") + 3);
  const std::size_t next = after.find_first_of("@/?");
  const bool user_info =
      authority.find_first_of("@/?") == npos && next != npos && after[next] == '@';
  // Without a ':' before it, it may be the user and the password.
  if (user_info) return encoded(value, authority.find(':') == npos ? ":" : "");
  const bool parameter = before.find('?') != npos && before.ends_with('=');
  return parameter ? encoded(value, "") : std::string(value);
}

std::string fit(std::string_view before, std::string_view after, std::string_view value) {
  const std::string left = without_references(before);
  const std::string right = without_references(after);
  if (is_postgres_url(left)) return fit_url(left, right, value);
  if (!is_parameters(left)) return std::string(value);
  if (left.ends_with("='")) return escaped(value);
  const bool whole =
      left.ends_with('=') && before.ends_with('=') && (right.empty() || right.front() == ' ');
  return whole ? "'" + escaped(value) + "'" : std::string(value);
}

tl::unexpected<Error> refused(std::string what, const char* hint = kEncode) {
  return fail(Errc::invalid_argument, std::move(what), hint);
}

Status check_encoding(std::string_view url) {
  for (std::size_t at = 0; at < url.size(); ++at) {
    if (url[at] == ' ') return refused("has a blank");
    if (url[at] != '%') continue;
    const bool good = at + 2 < url.size() && is_hex(url[at + 1]) && is_hex(url[at + 2]) &&
                      url.substr(at + 1, 2) != "00";
    if (!good) return refused("has a % that is not followed by two hexadecimal digits");
  }
  return {};
}

/// Of "host:port,host:port".
Status check_ports(std::string_view hosts) {
  while (true) {
    const std::string_view host = hosts.substr(0, hosts.find(','));
    const std::size_t bracket = host.find(']');  // [::1]:5432
    const std::size_t colon = host.find(':', bracket == npos ? 0 : bracket);
    const std::string_view port = colon == npos ? std::string_view() : host.substr(colon + 1);
    if (!std::all_of(port.begin(), port.end(), [](char c) { return event::is_digit(c); })) {
      return refused("has a port that is no number, or a password with a character that ends it");
    }
    if (host.size() == hosts.size()) return {};
    hosts.remove_prefix(host.size() + 1);
  }
}

Status check_parameters(std::string_view query) {
  while (!query.empty()) {
    const std::string_view one = query.substr(0, query.find('&'));
    if (one.find('=') == npos) {
      return refused("has a parameter without a value, or a password with a ? in it");
    }
    query.remove_prefix(std::min(one.size() + 1, query.size()));
  }
  return {};
}

Status check_postgres_url(std::string_view url) {
  if (Status status = check_encoding(url); !status) return status;
  const std::string_view rest = url.substr(url.find("://") + 3);
  const std::size_t query = std::min(rest.find('?'), rest.size());
  const std::string_view place = rest.substr(0, query);
  const std::string_view authority = place.substr(0, place.find('/'));
  const std::size_t at = authority.find('@');
  const bool in_host = at != npos && authority.find('@', at + 1) != npos;
  const bool in_path = place.find('@', authority.size()) != npos;
  if (in_host || in_path)
    return refused("has an @ or a / in its password, or an @ in the name of its database");
  if (Status status = check_ports(at == npos ? authority : authority.substr(at + 1)); !status)
    return status;
  return check_parameters(query < rest.size() ? rest.substr(query + 1) : std::string_view());
}

}  // namespace

Result<std::string> resolve_store_url(const std::string& text, const std::string& directory) {
  return resolve(text, directory, fit);
}

Status check_store_url(const std::string& url) {
  if (is_postgres_url(url)) return check_postgres_url(url);
  if (url.starts_with("sqlite:") || is_parameters(url) || is_file(url)) return {};
  const std::size_t scheme = url.find("://");
  return refused("expected a URL of PostgreSQL or SQLite, found " +
                     (scheme == npos ? std::string("something else")
                                     : "one that begins with " + url.substr(0, scheme + 3)),
                 kForms);
}

Status check_schema(const std::string& name) {
  const auto is_letter = [](char c) { return event::is_lower(c) || c == '_'; };
  const auto fits = [&](char c) { return is_letter(c) || event::is_digit(c); };
  const bool good = !name.empty() && name.size() <= kLongestSchema && is_letter(name.front()) &&
                    std::all_of(name.begin(), name.end(), fits);
  if (good) return {};
  return refused("is not a name of small letters, digits and '_', at most 63 of them",
                 "leave it at its default, outbox");
}

}  // namespace outbox::config
