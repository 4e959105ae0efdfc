// A new store is a folder with a `backend`, a StoreKind, and its lines here.
#include "store/backends.hpp"

#include "base/error.hpp"

namespace outbox::store {

namespace postgres {
extern const Backend backend;
}
namespace sqlite {
extern const Backend backend;
}

const Backend* backend_of(StoreKind kind) noexcept {
  switch (kind) {
#ifdef OUTBOX_WITH_POSTGRES
    case StoreKind::postgres: return &postgres::backend;
#endif
#ifdef OUTBOX_WITH_SQLITE
    case StoreKind::sqlite: return &sqlite::backend;
#endif
    default: return nullptr;
  }
}

/// Checks the URL before a driver sees it, whose messages may quote what it does not understand.
static Result<const Backend*> backend_for(const StoreOptions& options) {
  Status status = check_url(options.url);
  if (status) return backend_of(kind_of(options.url));
  status.error().message = "the store URL " + status.error().message;
  return pass(status);
}

Result<std::unique_ptr<Store>> open_store(StoreOptions options) {
  OUTBOX_TRY(const Backend* const backend, backend_for(options));
  return backend->open(std::move(options));
}

Result<std::string> print_migrations(const StoreOptions& options) {
  OUTBOX_TRY(const Backend* const backend, backend_for(options));
  return backend->print_migrations(options);
}

}  // namespace outbox::store
