// Resets a subscription. There is only one writer at a time, so what a relay writes comes before or
// after the reset.
#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "store/sql/audit.hpp"
#include "store/sql/parts.hpp"
#include "store/sqlite/clock.hpp"
#include "store/sqlite/parking.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/queries.hpp"
#include "store/sqlite/subscription_queries.hpp"
#include "store/stored_subscription.hpp"
#include "store/subscriptions.hpp"

namespace outbox::store::sqlite {
namespace {

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

/// The seq after which events are sent again.
std::int64_t again_after(const NewStart& start) {
  switch (start.kind) {
    case NewStart::Kind::beginning: return 0;
    case NewStart::Kind::after: return start.after;
    case NewStart::Kind::now: break;
  }
  return kNone;
}

class SqliteSubscriptionChanges final : public sql::SubscriptionChanges {
 public:
  explicit SqliteSubscriptionChanges(std::unique_ptr<Connection> connection)
      : sql::SubscriptionChanges(std::move(connection)),
        connection_(static_cast<Connection&>(db())) {}

  [[nodiscard]] Result<NewStart> find_slot(std::string_view /*slot*/) override {
    return fail(Errc::unsupported, "a SQLite store has no replication slots", "--to TIME");
  }

  [[nodiscard]] Result<ResetPlan> plan_reset(std::string_view name, const NewStart& start,
                                             bool with_headers) override {
    OUTBOX_TRY(const sql::FoundSubscription found, find(name));
    OUTBOX_TRY(const std::int64_t cursor, read_cursor(found.id, name));
    OUTBOX_TRY(const std::int64_t newest, connection_.integer(query::kNewestSeq));
    const std::int64_t after = std::min(again_after(start), newest);
    ResetPlan plan;
    OUTBOX_TRY(Statement row,
               connection_.query(query::kCountByType, std::min(after, cursor),
                                 std::max(after, cursor), std::int64_t{with_headers}));
    while (row.has_row()) {
      ResetCount count{
          .aggregate_type = row.text(0), .event_type = row.text(1), .headers = row.text(2)};
      (after < cursor ? count.again : count.skipped) = row.integer(3);
      plan.counts.push_back(std::move(count));
      OUTBOX_TRY(row.next());
    }
    OUTBOX_TRY(const Statement parked,
               connection_.query(query::kCountParkedAfter, found.id, again_after(start)));
    plan.parked_again = parked.integer(0);
    plan.corrected_again = parked.integer(1);
    plan.parked_kept = parked.integer(2);
    plan.discarded_again = parked.integer(3);
    return plan;
  }

  [[nodiscard]] Status reset(std::string_view name, const NewStart& start) override {
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    OUTBOX_TRY(const sql::FoundSubscription found, lock_idle(name));
    OUTBOX_TRY(connection_.run(query::kRaiseIds));
    OUTBOX_TRY(const std::int64_t id, connection_.integer(query::kNewestId));
    OUTBOX_TRY(renumber(found.id, id, again_after(start)));
    ParkedLedger ledger;
    OUTBOX_TRY(add_parked(connection_, id, ledger));
    OUTBOX_TRY(const std::int64_t newest, connection_.integer(query::kNewestSeq));
    OUTBOX_TRY(
        connection_.run(query::kBeginAgain, id, std::min(again_after(start), newest), wall_us(),
                        ledger.parked.count, static_cast<std::int64_t>(ledger.parked.hash),
                        ledger.delivered.count, static_cast<std::int64_t>(ledger.delivered.hash)));
    OUTBOX_TRY(sql::record(connection_, {.name = name}, 1));
    return transaction.commit();
  }

 private:
  [[nodiscard]] Result<std::int64_t> read_cursor(std::int64_t id, std::string_view name) {
    OUTBOX_TRY(const Statement cursor, connection_.query(query::kNewestCursor, id));
    if (!cursor.has_row()) return no_cursor(std::string(name));
    return cursor.integer(0);
  }

  /// Rows that stay get the new number; rows of events that are sent again do not.
  [[nodiscard]] Status renumber(std::int64_t id, std::int64_t fresh, std::int64_t after) {
    Status status = connection_.run(query::kNoteDropped, id, wall_us());
    if (status) status = forget_parked_after(connection_, id, after);
    if (status) status = connection_.run(query::kForgetEndsAfter, id, after);
    for (const std::string_view sql :
         {query::kRenumber, query::kMoveParked, query::kMoveParkedKeys, query::kMoveEnds,
          query::kMoveReplays, query::kMoveFormerNames}) {
      if (status) status = connection_.run(sql, id, fresh);
    }
    return status ? connection_.run(query::kDropRun, id) : status;
  }

  Connection& connection_;
};

}  // namespace

std::unique_ptr<SubscriptionChanges> make_subscription_changes(Connection connection) {
  return std::make_unique<SqliteSubscriptionChanges>(
      std::make_unique<Connection>(std::move(connection)));
}

}  // namespace outbox::store::sqlite
