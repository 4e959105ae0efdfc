// The PostgreSQL store, by its factory.
#pragma once

#include <memory>
#include <outbox/error.hpp>
#include <string>

#include "store/store.hpp"

namespace outbox::store::postgres {

/// Checks the schema's name. Opens nothing yet.
[[nodiscard]] Result<std::unique_ptr<Store>> open(StoreOptions options);

/// The migrations as a script for psql, with the schema in place.
[[nodiscard]] Result<std::string> print_migrations(const StoreOptions& options);

}  // namespace outbox::store::postgres
