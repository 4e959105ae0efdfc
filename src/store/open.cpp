// Chooses the store by its URL.
#include "base/error.hpp"
#include "store/store.hpp"
#include "store/url.hpp"

#ifdef OUTBOX_WITH_POSTGRES
#include "store/postgres/store.hpp"
#endif
#ifdef OUTBOX_WITH_SQLITE
#include "store/sqlite/schema.hpp"
#include "store/sqlite/store.hpp"
#endif

namespace outbox::store {
namespace {

/// Before anything is made of it: what it does not understand of an address, a driver may show.
Status check(const StoreOptions& options) {
  Status status = check_url(options.url);
  if (!status) status.error().message = "the store URL " + status.error().message;
  return status;
}

}  // namespace

Result<std::unique_ptr<Store>> open_store(StoreOptions options) {
  if (Status status = check(options); !status) return pass(status);
  switch (kind_of(options.url)) {
    case StoreKind::postgres:
#ifdef OUTBOX_WITH_POSTGRES
      return postgres::open(std::move(options));
#endif
      break;
    case StoreKind::sqlite:
#ifdef OUTBOX_WITH_SQLITE
      return sqlite::open(options);
#endif
      break;
    case StoreKind::unknown: break;
  }
  die(__FILE__, __LINE__, "check() lets pass what is built only");
}

Result<std::string> print_migrations(const StoreOptions& options) {
  if (Status status = check(options); !status) return pass(status);
  switch (kind_of(options.url)) {
    case StoreKind::postgres:
#ifdef OUTBOX_WITH_POSTGRES
      return postgres::print_migrations(options);
#endif
      break;
    case StoreKind::sqlite:
#ifdef OUTBOX_WITH_SQLITE
      return sqlite::print_migrations();
#endif
      break;
    case StoreKind::unknown: break;
  }
  die(__FILE__, __LINE__, "check() lets pass what is built only");
}

}  // namespace outbox::store
