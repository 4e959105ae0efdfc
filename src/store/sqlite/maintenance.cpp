#include "store/sqlite/maintenance.hpp"

#include <filesystem>
#include <system_error>

#include "base/error.hpp"
#include "base/log.hpp"
#include "store/sqlite/queries.hpp"
#include "store/sqlite/version.hpp"

namespace outbox::store::sqlite {
namespace {

/// Applications checkpoint by themselves at 4 MiB (1000 pages); beyond this nobody does.
constexpr std::uint64_t kLargeWal = std::uint64_t{64} << 20U;

}  // namespace

std::uint64_t wal_bytes(const std::string& database) {
  std::error_code error;
  const auto size = std::filesystem::file_size(database + "-wal", error);
  return error ? 0 : size;
}

Status checkpoint_alone(Connection& connection) {
  auto guard = Connection::open(connection.file());
  if (!guard) return pass(guard);
  auto nobody_writes = WriteTransaction::begin(*guard);
  if (!nobody_writes) return pass(nobody_writes);
  auto checkpoint = connection.statement(query::kCheckpoint);
  if (!checkpoint) return pass(checkpoint);
  return checkpoint->run();
}

Result<std::string> SqliteMaintenance::run() {
  const std::uint64_t size = wal_bytes(connection_.file());
  if (size < kLargeWal) {
    warned_ = false;
    return std::string{};
  }
  if (!has_wal_reset_bug(version_number_)) {
    auto checkpoint = connection_.statement(query::kTruncateWal);
    if (!checkpoint) return pass(checkpoint);
    if (Status status = checkpoint->run(); !status) return pass(status);
    return "emptied the WAL bytes=" + std::to_string(size);
  }
  if (!warned_) {
    log::warn(
        "nobody checkpoints the WAL",
        {{"file", connection_.file() + "-wal"},
         {"bytes", size},
         {"hint",
          "run PRAGMA wal_checkpoint in the application; with this SQLite the relay must not"}});
    warned_ = true;
  }
  return std::string{};
}

}  // namespace outbox::store::sqlite
