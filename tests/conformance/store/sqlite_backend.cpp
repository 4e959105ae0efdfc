#include "conformance/store/sqlite_database.hpp"

namespace outbox::conformance {

std::vector<Backend> backends() {
  return {Backend{.name = "Sqlite",
                  .missing = [] { return std::string{}; },
                  .create = [](Begin) { return std::make_unique<SqliteDatabase>(); }}};
}

}  // namespace outbox::conformance
