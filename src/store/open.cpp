// Chooses the store by its URL.
#include "base/error.hpp"
#include "store/backends.hpp"

namespace outbox::store {
namespace {

/// Checks the URL before a driver sees it, whose messages may quote what it does not understand.
Result<const Backend*> backend_for(const StoreOptions& options) {
  Status status = check_url(options.url);
  if (status) return backend_of(kind_of(options.url));
  status.error().message = "the store URL " + status.error().message;
  return pass(status);
}

}  // namespace

Result<std::unique_ptr<Store>> open_store(StoreOptions options) {
  OUTBOX_TRY(const Backend* const backend, backend_for(options));
  return backend->open(std::move(options));
}

Result<std::string> print_migrations(const StoreOptions& options) {
  OUTBOX_TRY(const Backend* const backend, backend_for(options));
  return backend->print_migrations(options);
}

}  // namespace outbox::store
