#include "store/url.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/text.hpp"

#ifdef OUTBOX_WITH_POSTGRES
#include "store/postgres/url.hpp"
#endif
#ifdef OUTBOX_WITH_SQLITE
#include "store/sqlite/path.hpp"
#endif

namespace outbox::store {
namespace {

constexpr const char* kForms = "postgresql://USER@HOST/DATABASE, or sqlite:PATH";
constexpr const char* kNotShown = "(an address that is not understood)";

bool is_file(std::string_view url) {
  const auto ends = [&](std::string_view with) {
    return url.size() > with.size() && url.ends_with(with);
  };
  return ends(".db") || ends(".sqlite") || ends(".sqlite3");
}

Status unknown(std::string_view url) {
  constexpr std::array<std::string_view, 2> kSchemes{"postgresql", "sqlite"};
  const std::size_t colon = url.find(':');
  const auto near =
      colon == std::string_view::npos ? std::nullopt : nearest(url.substr(0, colon), kSchemes);
  return fail(
      Errc::invalid_argument, "is no address of PostgreSQL or SQLite",
      near ? "did you mean " + std::string(*near) + (*near == "sqlite" ? ":PATH?" : "://...?")
           : kForms);
}

[[maybe_unused]] Status not_built(const std::string& what) {
  return fail(Errc::unsupported, "is of " + what + ", and this program was built without it",
              "build with -DOUTBOX_WITH_" + what + "=ON");
}

}  // namespace

StoreKind kind_of(std::string_view url) noexcept {
  if (url.starts_with("postgresql://") || url.starts_with("postgres://"))
    return StoreKind::postgres;
  if (url.starts_with("sqlite:")) return StoreKind::sqlite;
  const std::size_t equals = url.find('=');
  if (url.substr(0, equals).find("://") != std::string_view::npos) return StoreKind::unknown;
  if (equals != std::string_view::npos) return StoreKind::postgres;
  return is_file(url) ? StoreKind::sqlite : StoreKind::unknown;
}

Status check_url(const std::string& url) {
  if (url.empty()) return fail(Errc::invalid_argument, "is empty", kForms);
  switch (kind_of(url)) {
    case StoreKind::postgres:
#ifdef OUTBOX_WITH_POSTGRES
      return postgres::check_url(url);
#else
      return not_built("POSTGRES");
#endif
    case StoreKind::sqlite:
#ifdef OUTBOX_WITH_SQLITE
      if (auto path = sqlite::path_of(url); !path) return pass(path);
      return {};
#else
      return not_built("SQLITE");
#endif
    case StoreKind::unknown: break;
  }
  return unknown(url);
}

Status check_place([[maybe_unused]] const std::string& url) {
#ifdef OUTBOX_WITH_SQLITE
  if (kind_of(url) == StoreKind::sqlite) {
    auto path = sqlite::path_of(url);
    return path ? sqlite::check_path(*path, true) : Status(pass(path));
  }
#endif
  return {};
}

std::string file_of([[maybe_unused]] const std::string& url) {
#ifdef OUTBOX_WITH_SQLITE
  if (kind_of(url) == StoreKind::sqlite && check_url(url)) return sqlite::written_path(url);
#endif
  return {};
}

std::string shown_url(const std::string& url) {
  if (url.empty()) return {};
  if (!check_url(url)) return kNotShown;
#ifdef OUTBOX_WITH_POSTGRES
  if (kind_of(url) == StoreKind::postgres) return postgres::shown_url(url);
#endif
  return url;
}

}  // namespace outbox::store
