// What a relay reads about its parked events.
#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "store/parking_law.hpp"
#include "store/sqlite/clock.hpp"
#include "store/sqlite/event_row.hpp"
#include "store/sqlite/parking.hpp"
#include "store/sqlite/queries.hpp"
#include "store/stored_subscription.hpp"

namespace outbox::store::sqlite {

Result<ParkedKeys> read_parked_keys(Connection& connection, std::int64_t subscription) {
  OUTBOX_TRY(Statement row, connection.query(query::kParkedKeys, subscription));
  ParkedKeys keys;
  while (row.has_row()) {
    if (row.is_null(0)) {
      keys.live = static_cast<std::size_t>(row.integer(1));
    } else {
      keys.keys.push_back(
          {.key = static_cast<std::uint64_t>(row.integer(0)), .run_seq = row.integer(1)});
    }
    OUTBOX_TRY(row.next());
  }
  return keys;
}

namespace {

/// The most bytes of texts that are read at once.
constexpr std::size_t kDueBytes = std::size_t{8} << 20U;

/// A read transaction: everything that is read while the object lives is of one moment.
class Snapshot {
 public:
  [[nodiscard]] static Result<Snapshot> take(Connection& connection) {
    OUTBOX_TRY(connection.run(query::kBeginRead));
    return Snapshot(connection);
  }
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;
  Snapshot(Snapshot&& other) noexcept : connection_(std::exchange(other.connection_, nullptr)) {}
  Snapshot& operator=(Snapshot&&) = delete;
  ~Snapshot() {
    if (connection_ != nullptr && connection_->in_transaction())
      (void)connection_->run(query::kRollback);
  }

 private:
  explicit Snapshot(Connection& connection) : connection_(&connection) {}
  Connection* connection_;
};

Result<std::vector<AskedState>> read_asked(Connection& connection, std::int64_t subscription,
                                           std::span<const AskedRow> asked) {
  std::vector<AskedState> states;
  for (const AskedRow& one : asked) {
    OUTBOX_TRY(const Statement row, connection.query(query::kAskParked, subscription, one.seq,
                                                     static_cast<std::int64_t>(one.key)));
    AskedState state{.seq = one.seq, .key_left = row.integer(1) != 0};
    if (!row.is_null(0)) state.state = parse_parked_state(row.bytes(0));
    states.push_back(state);
  }
  return states;
}

/// Reads keys that are due, until a limit is reached.
class DueReader {
 public:
  DueReader(Connection& connection, std::int64_t subscription, const DueLimits& limits)
      : connection_(connection), subscription_(subscription), limits_(limits) {}

  [[nodiscard]] Status read(std::int64_t generation, DueEvents& due) {
    const std::int64_t now = wall_us();
    OUTBOX_TRY(Statement key,
               connection_.query(query::kDueKeys, subscription_, law::kNever,
                                 static_cast<std::int64_t>(limits_.events) + 1, generation));
    for (std::size_t keys = 0; key.has_row(); ++keys) {
      const std::int64_t wait_us = std::max<std::int64_t>(key.integer(1) - now, 0);
      const std::size_t before = due.rows.size();
      const bool goes = wait_us == 0 && keys < limits_.events && !full_;
      if (goes) {
        OUTBOX_TRY(read_chain(key, keys < limits_.keys, due.rows));
      }
      if (!goes || (full_ && due.rows.size() == before)) {
        due.next_in = std::chrono::milliseconds(wait_us / 1000);
        break;
      }
      OUTBOX_TRY(key.next());
    }
    due.storage = std::move(memory_);
    return {};
  }

 private:
  /// The first events of a key.
  [[nodiscard]] Status read_chain(const Statement& key, bool behind, std::vector<ParkedRow>& rows) {
    const std::size_t events = behind ? 1 + limits_.behind : 1;
    OUTBOX_TRY(Statement row, connection_.query(query::kDueParked, subscription_, key.integer(0),
                                                key.integer(5), static_cast<std::int64_t>(events)));
    for (bool first = true; row.has_row(); first = false) {
      ParkedRow parked{.event = read_view(row),
                       .key = static_cast<std::uint64_t>(key.integer(0)),
                       .version = key.integer(2),
                       .attempts = first ? static_cast<std::size_t>(key.integer(3)) : 0,
                       .token = key.integer(4)};
      const std::size_t size = size_of_texts(parked.event);
      full_ = !rows.empty() && bytes_ + size > kDueBytes;
      if (full_) return {};
      bytes_ += size;
      keep(parked.event, size, *memory_);
      rows.push_back(parked);
      OUTBOX_TRY(row.next());
    }
    return {};
  }

  Connection& connection_;
  const std::int64_t subscription_;
  const DueLimits& limits_;
  std::shared_ptr<EventMemory> memory_{std::make_shared<EventMemory>(kFirstPiece)};
  std::size_t bytes_{0};
  bool full_{false};
};

}  // namespace

Result<DueEvents> read_due(Connection& connection, std::int64_t subscription,
                           std::int64_t generation, const DueLimits& limits,
                           std::span<const AskedRow> asked) {
  OUTBOX_TRY(const Snapshot snapshot, Snapshot::take(connection));
  DueEvents due;
  OUTBOX_TRY(due.asked, read_asked(connection, subscription, asked));
  OUTBOX_TRY(DueReader(connection, subscription, limits).read(generation, due));
  return due;
}

}  // namespace outbox::store::sqlite
