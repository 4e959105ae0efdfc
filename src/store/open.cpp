// Chooses the store by its URL, and the words of the contract as they are stored.
#include "base/error.hpp"
#include "store/store.hpp"

#ifdef OUTBOX_WITH_POSTGRES
#include "store/postgres/store.hpp"
#endif
#ifdef OUTBOX_WITH_SQLITE
#include "store/sqlite/path.hpp"
#include "store/sqlite/store.hpp"
#endif

namespace outbox::store {
namespace {

bool begins(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

enum class Kind : std::uint8_t { postgres, sqlite, unknown };

Kind kind_of(std::string_view url) {
  if (begins(url, "postgresql://") || begins(url, "postgres://")) return Kind::postgres;
  if (begins(url, "sqlite:")) return Kind::sqlite;
#ifdef OUTBOX_WITH_SQLITE
  if (sqlite::is_sqlite_url(url)) return Kind::sqlite;
#endif
  if (url.find('=') != std::string_view::npos && url.find("://") == std::string_view::npos)
    return Kind::postgres;
  return Kind::unknown;
}

/// What may be shown of a URL: it can hold a password.
std::string scheme_of(std::string_view url) {
  const auto end = url.find(':');
  return end == std::string_view::npos ? std::string("(no scheme)")
                                       : std::string(url.substr(0, end)) + ":";
}

constexpr const char* kForms = "postgresql://USER@HOST/DATABASE, or sqlite:PATH";

tl::unexpected<Error> no_store(const StoreOptions& options) {
  if (options.url.empty()) return fail(Errc::invalid_argument, "store URL: is empty", kForms);
  return fail(Errc::invalid_argument, "store URL: unknown kind " + scheme_of(options.url), kForms);
}

[[maybe_unused]] tl::unexpected<Error> not_built(const char* what) {
  return fail(Errc::unsupported, std::string("store URL: this program was built without ") + what);
}

}  // namespace

const char* to_string(SettlementKind kind) noexcept {
  switch (kind) {
    case SettlementKind::settle: return "settle";
    case SettlementKind::claim: return "claim";
    case SettlementKind::mark: return "mark";
    case SettlementKind::retry: return "retry";
    case SettlementKind::reset: return "reset";
  }
  return "settle";
}

const char* to_string(SubscriptionState state) noexcept {
  switch (state) {
    case SubscriptionState::active: return "active";
    case SubscriptionState::paused: return "paused";
    case SubscriptionState::stopped: return "stopped";
  }
  return "stopped";
}

Result<std::unique_ptr<Store>> open_store(StoreOptions options) {
  switch (kind_of(options.url)) {
    case Kind::postgres:
#ifdef OUTBOX_WITH_POSTGRES
      return postgres::open(std::move(options));
#else
      return not_built("PostgreSQL");
#endif
    case Kind::sqlite:
#ifdef OUTBOX_WITH_SQLITE
      return sqlite::open(options);
#else
      return not_built("SQLite");
#endif
    case Kind::unknown: break;
  }
  return no_store(options);
}

Result<std::string> print_migrations(const StoreOptions& options) {
  switch (kind_of(options.url)) {
    case Kind::postgres:
#ifdef OUTBOX_WITH_POSTGRES
      return postgres::print_migrations(options);
#else
      return not_built("PostgreSQL");
#endif
    case Kind::sqlite:
#ifdef OUTBOX_WITH_SQLITE
      return sqlite::print_migrations();
#else
      return not_built("SQLite");
#endif
    case Kind::unknown: break;
  }
  return no_store(options);
}

}  // namespace outbox::store
