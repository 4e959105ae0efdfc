// Checkpoints, where the linked SQLite can be trusted with them.
#pragma once

#include <string>
#include <utility>

#include "store/maintenance.hpp"
#include "store/sqlite/connection.hpp"

namespace outbox::store::sqlite {

class SqliteMaintenance final : public Maintenance {
 public:
  /// `version_number`: sqlite3_libversion_number().
  SqliteMaintenance(Connection connection, int version_number)
      : connection_(std::move(connection)), version_number_(version_number) {}

  [[nodiscard]] Result<std::string> run() override;

 private:
  Connection connection_;
  const int version_number_;
  bool warned_{false};
};

/// The size of the file's WAL; 0 when there is none.
[[nodiscard]] std::uint64_t wal_bytes(const std::string& database);

/// Copies the WAL into the file while another connection of ours holds the write lock: no commit runs meanwhile, which the
/// WAL-reset bug (version.hpp) needs. The WAL keeps its size, and is used from its beginning again. Busy:
/// Remedy::retry_call, nothing is done.
[[nodiscard]] Status checkpoint_alone(Connection& connection);

}  // namespace outbox::store::sqlite
