// Writes events for the command line, many in one transaction.
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "store/enqueue.hpp"
#include "store/sqlite/event_insert.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/queries.hpp"

namespace outbox::store::sqlite {
namespace {

constexpr std::uint64_t kWalToReopenAt = std::uint64_t{32} << 20U;
constexpr std::uint64_t kLookEvery = 64;  ///< Counted in transactions; a look is one stat(2).

class SqliteWriter final : public Writer {
 public:
  explicit SqliteWriter(Connection connection) : connection_(std::move(connection)) {}

  [[nodiscard]] Result<std::vector<EventId>> write(std::span<const Event> events) override {
    OUTBOX_TRY(validate_all(events, {}));
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    std::vector<EventId> ids = list_ids(events);
    OUTBOX_TRY(const Statement insert, connection_.statement(query::kInsertEvent));
    OUTBOX_TRY(insert_events(insert.raw(), events, ids));
    OUTBOX_TRY(transaction.commit());
    // The events are committed, whether or not the checkpoint succeeds.
    if (Status kept = keep_wal_small(); !kept)
      log::warn("the WAL could not be checkpointed", {{"reason", kept.error().text()}});
    return ids;
  }

 private:
  // The WAL would grow without end where only the command line writes. The first write checks, too,
  // since it may be the only one of its process.
  [[nodiscard]] Status keep_wal_small() {
    if (writes_++ % kLookEvery != 0 || wal_bytes(connection_.file()) < kWalToReopenAt) return {};
    // The last connection to be closed is alone with the file; only then is the WAL emptied.
    connection_.checkpoint_on_close();
    Status status = checkpoint_alone(connection_);
    // A busy file is checkpointed another time.
    if (!status && status.error().remedy == Remedy::retry_call) return {};
    return status;
  }

  Connection connection_;
  std::uint64_t writes_{0};
};

}  // namespace

std::unique_ptr<Writer> make_writer(Connection connection) {
  return std::make_unique<SqliteWriter>(std::move(connection));
}

}  // namespace outbox::store::sqlite
