// Resets a subscription's cursor; the functions of 0009_subscriptions.sql change its rows.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "store/postgres/marks.hpp"
#include "store/postgres/parts.hpp"
#include "store/postgres/subscription_queries.hpp"
#include "store/sql/audit.hpp"
#include "store/sql/parts.hpp"
#include "store/subscriptions.hpp"

namespace outbox::store::postgres {
namespace {

Param seq_or_null(const NewStart& start) {
  switch (start.kind) {
    case NewStart::Kind::beginning: return std::int64_t{0};
    case NewStart::Kind::after: return start.after;
    case NewStart::Kind::now: break;
  }
  return Param::null();
}

class PostgresSubscriptionChanges final : public sql::SubscriptionChanges {
 public:
  explicit PostgresSubscriptionChanges(std::unique_ptr<Connection> connection)
      : sql::SubscriptionChanges(std::move(connection)),
        connection_(static_cast<Connection&>(db())),
        queries_(connection_.queries().schema) {}

  [[nodiscard]] Result<ResetPlan> plan_reset(std::string_view name, const NewStart& start,
                                             bool with_headers) override {
    OUTBOX_TRY(const sql::FoundSubscription found, find(name));
    const std::int32_t id = found.id;
    ResetPlan plan;
    OUTBOX_TRY(const Rows counts, connection_.exec_with(&Queries::no_limits, queries_.count_reset,
                                                        {id, seq_or_null(start), with_headers}));
    for (int row = 0; row < counts.size(); ++row) {
      plan.counts.push_back({.aggregate_type = counts.text(row, 0),
                             .event_type = counts.text(row, 1),
                             .headers = counts.text(row, 2),
                             .again = counts.int8(row, 3),
                             .skipped = counts.int8(row, 4)});
    }
    OUTBOX_TRY(const Rows parked, connection_.exec_with(&Queries::no_limits, queries_.count_parked,
                                                        {id, seq_or_null(start)}));
    plan.parked_again = parked.int8(0, 0);
    plan.corrected_again = parked.int8(0, 1);
    plan.parked_kept = parked.int8(0, 2);
    plan.discarded_again = parked.int8(0, 3);
    return plan;
  }

  [[nodiscard]] Status reset(std::string_view name, const NewStart& start) override {
    OUTBOX_TRY(const Place place, read_place(start));
    return connection_.transact([&]() -> Result<Decision> {
      OUTBOX_TRY(const sql::FoundSubscription found, lock_idle(name));
      OUTBOX_TRY(const Rows fresh, connection_.exec(queries_.restart, {found.id, seq_or_null(start),
                                                                       place.snapshot}));
      const std::int32_t id = fresh.int4(0, 0);
      ParkedLedger ledger;
      OUTBOX_TRY(add_parked(connection_, id, ledger));
      const auto count = [](const Tally& tally) { return static_cast<std::int32_t>(tally.count); };
      const auto hash = [](const Tally& tally) { return static_cast<std::int64_t>(tally.hash); };
      OUTBOX_TRY(
          const Rows begun,
          connection_.exec(queries_.begin_again,
                           {id, start.kind == NewStart::Kind::now, place.snapshot, place.position,
                            place.bound, place.incarnation, count(ledger.parked),
                            hash(ledger.parked), count(ledger.delivered), hash(ledger.delivered)}));
      if (begun.empty()) return fail(other_incarnation().value());
      OUTBOX_TRY(sql::record(connection_, {.name = name}, 1));
      return Decision::commit;
    });
  }

 private:
  /// A place in a pair that begins with nothing; all members are null if there is none.
  struct Place {
    Param snapshot{Param::null()};
    Param position{Param::null()};
    Param bound{Param::null()};
    Param incarnation{Param::null()};
  };

  /// Reads, before the transaction that uses them, the snapshot and then the sequence, which bounds
  /// what is visible in the snapshot and is a mark. A subscription that starts now gets a mark
  /// below its first snapshot, as a new one does.
  [[nodiscard]] Result<Place> read_place(const NewStart& start) {
    if (start.kind == NewStart::Kind::beginning) return Place{};
    OUTBOX_TRY(const Rows snapshot, connection_.exec(&Queries::moment));
    OUTBOX_TRY(const SequenceReading reading, read_sequence(connection_));
    if (start.kind == NewStart::Kind::now) {
      OUTBOX_TRY(write_mark(connection_, reading));
      return Place{};
    }
    return Place{.snapshot = snapshot.text(0, 0),
                 .position = start.after,
                 .bound = reading.value,
                 .incarnation = reading.incarnation};
  }

  Connection& connection_;
  const SubscriptionQueries queries_;
};

}  // namespace

std::unique_ptr<SubscriptionChanges> make_subscription_changes(Connection connection) {
  return std::make_unique<PostgresSubscriptionChanges>(
      std::make_unique<Connection>(std::move(connection)));
}

}  // namespace outbox::store::postgres
