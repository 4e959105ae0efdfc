// A store with the tables of the outbox.
#pragma once

#include <memory>
#include <string>

#include "store/store.hpp"
#include "support/failure.hpp"

namespace outbox::test {

/// Opens the store and makes its tables.
inline std::unique_ptr<store::Store> migrated_store(const std::string& url,
                                                    const std::string& schema,
                                                    const std::string& application) {
  auto store = must(store::open_store({.url = url, .schema = schema, .application = application}));
  (void)must(store->migrate());
  return store;
}

}  // namespace outbox::test
