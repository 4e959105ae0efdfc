// Empties a large WAL, if the linked SQLite can be trusted with checkpoints.
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/queries.hpp"

namespace outbox::store::sqlite {

std::uint64_t wal_bytes(const std::string& database) {
  std::error_code error;
  const auto size = std::filesystem::file_size(database + "-wal", error);
  return error ? 0 : size;
}

Status checkpoint_alone(Connection& connection) {
  OUTBOX_TRY(Connection guard, Connection::open(connection.file()));
  OUTBOX_TRY(const WriteTransaction no_writers, WriteTransaction::begin(guard));
  return connection.run(query::kCheckpoint);
}

namespace {

/// By default, applications checkpoint at 4 MiB (1000 pages). A WAL larger than this shows that no
/// application does.
constexpr std::uint64_t kWalToWarnOf = std::uint64_t{64} << 20U;

class SqliteMaintenance final : public Maintenance {
 public:
  explicit SqliteMaintenance(Connection connection) : connection_(std::move(connection)) {}

  [[nodiscard]] Result<std::string> run() override {
    const std::uint64_t size = wal_bytes(connection_.file());
    if (size < kWalToWarnOf) {
      warned_ = false;
      return std::string{};
    }
    if (!has_wal_reset_bug(sqlite3_libversion_number())) {
      OUTBOX_TRY(connection_.run(query::kTruncateWal));
      return "emptied the WAL bytes=" + std::to_string(size);
    }
    if (!std::exchange(warned_, true)) {
      log::warn(
          "the WAL is not checkpointed",
          {{"file", connection_.file() + "-wal"},
           {"bytes", size},
           {"hint",
            "run PRAGMA wal_checkpoint in the application; with this SQLite the relay must not"}});
    }
    return std::string{};
  }

 private:
  Connection connection_;
  bool warned_{false};
};

}  // namespace

std::unique_ptr<Maintenance> make_maintenance(Connection connection) {
  return std::make_unique<SqliteMaintenance>(std::move(connection));
}

}  // namespace outbox::store::sqlite
