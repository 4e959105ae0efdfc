// A new store needs a folder with a `backend`, a StoreKind, and its lines here.
#include "store/backends.hpp"

#include "base/error.hpp"
#include "store/adoption.hpp"

namespace outbox::store {

namespace postgres {
extern const Backend backend;
Result<std::unique_ptr<Adopter>> open_adopter(const StoreOptions& options);
Result<std::vector<AdoptionRow>> open_adoptions(const StoreOptions& options);
}  // namespace postgres
namespace sqlite {
extern const Backend backend;
}

const Backend* find_backend(StoreKind kind) noexcept {
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
  if (status) return find_backend(store_kind(options.url));
  status.error().message = "the store URL " + status.error().message;
  return pass(status);
}

Result<std::unique_ptr<Store>> open_store(StoreOptions options) {
  OUTBOX_TRY(const Backend* const backend, backend_for(options));
  return backend->open(std::move(options));
}

Result<std::unique_ptr<SubscriptionChanges>> open_subscription_changes(StoreOptions options) {
  OUTBOX_TRY(const Backend* const backend, backend_for(options));
  return backend->open_changes(options);
}

Result<std::string> print_migrations(const StoreOptions& options) {
  OUTBOX_TRY(const Backend* const backend, backend_for(options));
  return backend->print_migrations(options);
}

Diagnosis diagnose(const StoreOptions& options, std::chrono::steady_clock::time_point until) {
  auto backend = backend_for(options);
  if (!backend) return {.reached = pass(backend)};
  return (*backend)->diagnose(options, until);
}

Result<std::vector<AdoptionRow>> open_adoptions([[maybe_unused]] const StoreOptions& options) {
#ifdef OUTBOX_WITH_POSTGRES
  if (store_kind(options.url) == StoreKind::postgres) return postgres::open_adoptions(options);
#endif
  return std::vector<AdoptionRow>{};
}

Result<std::unique_ptr<Adopter>> open_adopter(const StoreOptions& options) {
  OUTBOX_TRY([[maybe_unused]] const Backend* const backend, backend_for(options));
  if (store_kind(options.url) != StoreKind::postgres)
    return fail(Errc::unsupported, "tables are adopted on PostgreSQL only",
                "on SQLite write a trigger: INSERT INTO outbox_new_event");
#ifdef OUTBOX_WITH_POSTGRES
  return postgres::open_adopter(options);
#else
  return fail(Errc::unsupported, "this program was built without PostgreSQL");
#endif
}

}  // namespace outbox::store
