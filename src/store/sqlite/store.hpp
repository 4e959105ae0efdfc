// The SQLite store, by its factory.
#pragma once

#include <memory>
#include <outbox/error.hpp>
#include <string>

#include "store/store.hpp"

namespace outbox::store::sqlite {

/// Opens nothing yet.
[[nodiscard]] Result<std::unique_ptr<Store>> open(const StoreOptions& options);

}  // namespace outbox::store::sqlite
