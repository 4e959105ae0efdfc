#include "store/url.hpp"

#include <array>

#include "base/error.hpp"
#include "base/text.hpp"
#include "store/backends.hpp"

namespace outbox::store {
namespace {

constexpr auto npos = std::string_view::npos;
constexpr const char* kForms = "postgresql://USER@HOST/DATABASE, or sqlite:PATH";
constexpr const char* kNotShown = "(a URL that is not understood)";

bool is_postgres_url(std::string_view url) {
  return url.starts_with("postgresql://") || url.starts_with("postgres://");
}

bool is_file(std::string_view url) {
  const auto ends = [&](std::string_view with) {
    return url.size() > with.size() && url.ends_with(with);
  };
  return ends(".db") || ends(".sqlite") || ends(".sqlite3");
}

Status unknown(std::string_view url) {
  constexpr std::array<std::string_view, 2> kSchemes{"postgresql", "sqlite"};
  const std::size_t colon = url.find(':');
  const auto near = colon == npos ? std::nullopt : nearest(url.substr(0, colon), kSchemes);
  return fail(
      Errc::invalid_argument, "is not a URL of PostgreSQL or SQLite",
      near ? "did you mean " + std::string(*near) + (*near == "sqlite" ? ":PATH?" : "://...?")
           : kForms);
}

Status not_built(StoreKind kind) {
  const std::string what = kind == StoreKind::postgres ? "POSTGRES" : "SQLITE";
  return fail(Errc::unsupported, "is of " + what + ", and this program was built without it",
              "build with -DOUTBOX_WITH_" + what + "=ON");
}

std::string escaped(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string fitted_url(std::string_view before, std::string_view after, std::string_view value) {
  const std::string_view authority = before.substr(before.find("://") + 3);
  const std::size_t next = after.find_first_of("@/?");
  const bool user_info =
      authority.find_first_of("@/?") == npos && next != npos && after[next] == '@';
  // Without a ':' before it, the value may be the user and the password.
  if (user_info) return percent_encoded(value, authority.find(':') == npos ? ":-._~" : "-._~");
  const bool parameter = before.find('?') != npos && before.ends_with('=');
  return parameter ? percent_encoded(value, "-._~") : std::string(value);
}

/// Null if check_url() refuses the URL.
const Backend* understood(const std::string& url) {
  return check_url(url) ? find_backend(store_kind(url)) : nullptr;
}

}  // namespace

StoreKind store_kind(std::string_view url) noexcept {
  if (is_postgres_url(url)) return StoreKind::postgres;
  if (url.starts_with("sqlite:")) return StoreKind::sqlite;
  const std::size_t equals = url.find('=');
  if (url.substr(0, equals).find("://") != npos) return StoreKind::unknown;
  if (equals != npos) return StoreKind::postgres;
  return is_file(url) ? StoreKind::sqlite : StoreKind::unknown;
}

Status check_url(const std::string& url) {
  if (url.empty()) return fail(Errc::invalid_argument, "is empty", kForms);
  const StoreKind kind = store_kind(url);
  if (kind == StoreKind::unknown) return unknown(url);
  const Backend* const backend = find_backend(kind);
  return backend == nullptr ? not_built(kind) : backend->check_url(url);
}

Status check_place(const std::string& url) {
  const Backend* const backend = understood(url);
  return backend == nullptr ? Status{} : backend->check_place(url);
}

std::string find_file(const std::string& url) {
  const Backend* const backend = understood(url);
  return backend == nullptr ? std::string{} : backend->find_file(url);
}

std::string shown_url(const std::string& url) {
  if (url.empty()) return {};
  const Backend* const backend = understood(url);
  return backend == nullptr ? kNotShown : backend->shown_url(url);
}

std::string fitted(std::string_view before, std::string_view after, std::string_view value,
                   bool whole) {
  if (is_postgres_url(before)) return fitted_url(before, after, value);
  if (store_kind(before) != StoreKind::postgres) return std::string(value);
  if (before.ends_with("='")) return escaped(value);
  return whole ? "'" + escaped(value) + "'" : std::string(value);
}

}  // namespace outbox::store
