#include "store/sqlite/writer.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "store/sqlite/error_map.hpp"
#include "store/sqlite/event_insert.hpp"
#include "store/sqlite/maintenance.hpp"
#include "store/sqlite/queries.hpp"

namespace outbox::store::sqlite {
namespace {

constexpr std::uint64_t kLargeWal = std::uint64_t{32} << 20U;
constexpr std::uint64_t kLookEvery = 64;  ///< In transactions; a look is one stat(2).

}  // namespace

Result<std::vector<EventId>> SqliteWriter::write(std::span<const Event> events) {
  if (Status status = validate_all(events, {}); !status) return pass(status);
  auto transaction = WriteTransaction::begin(connection_);
  if (!transaction) return pass(transaction);
  std::vector<EventId> ids;
  ids.reserve(events.size());
  auto insert = connection_.statement(query::kInsertEvent);
  if (!insert) return pass(insert);
  if (Status status = insert_events(insert->raw(), events, ids); !status) return pass(status);
  if (Status status = transaction->commit(); !status) return pass(status);
  // The events are committed, whatever becomes of the checkpoint.
  if (Status status = keep_wal_small(); !status)
    log::warn("the WAL could not be checkpointed", {{"reason", status.error().text()}});
  return ids;
}

// Programs that write through the command line alone would let the WAL grow without end. The first write looks, too: it
// may be the only one of its process.
Status SqliteWriter::keep_wal_small() {
  if (writes_++ % kLookEvery != 0 || wal_bytes(connection_.file()) < kLargeWal) return {};
  // The last to close the file is alone with it; only then is the WAL emptied.
  connection_.checkpoint_on_close();
  Status status = checkpoint_alone(connection_);
  // A busy file is checkpointed another time.
  if (!status && status.error().remedy == Remedy::retry_call) return {};
  return status;
}

}  // namespace outbox::store::sqlite
