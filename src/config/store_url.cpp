#include "config/store_url.hpp"

#include <algorithm>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"
#include "config/reference.hpp"
#include "store/url.hpp"

namespace outbox::config {
namespace {

constexpr auto npos = std::string_view::npos;
constexpr std::size_t kLongestSchema = 63;

bool is_postgres_url(std::string_view text) {
  return text.starts_with("postgresql://") || text.starts_with("postgres://");
}

std::string encoded(std::string_view value, std::string_view plain) {
  constexpr std::string_view kUnreserved = "-._~";
  std::string out;
  for (const char c : value) {
    if (is_alnum(c) || kUnreserved.find(c) != npos || plain.find(c) != npos) {
      out += c;
    } else {
      append_hex(out.append("%"), c, kUpperHexDigits);
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
  if (store::kind_of(left) != store::StoreKind::postgres) return std::string(value);
  if (left.ends_with("='")) return escaped(value);
  const bool whole =
      left.ends_with('=') && before.ends_with('=') && (right.empty() || right.front() == ' ');
  return whole ? "'" + escaped(value) + "'" : std::string(value);
}

}  // namespace

Result<std::string> resolve_store_url(const std::string& text, const std::string& directory) {
  return resolve(text, directory, fit);
}

Status check_schema(const std::string& name) {
  const auto is_letter = [](char c) { return is_lower(c) || c == '_'; };
  const auto fits = [&](char c) { return is_letter(c) || is_digit(c); };
  const bool good = !name.empty() && name.size() <= kLongestSchema && is_letter(name.front()) &&
                    std::all_of(name.begin(), name.end(), fits);
  if (good) return {};
  return fail(Errc::invalid_argument,
              "is not a name of small letters, digits and '_', at most 63 of them",
              "leave it at its default, outbox");
}

}  // namespace outbox::config
