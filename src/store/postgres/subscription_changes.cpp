// Resets a subscription's cursor; the functions of 0009_subscriptions.sql change its rows.
#include <algorithm>
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

  [[nodiscard]] Result<NewStart> find_slot(std::string_view slot) override {
    OUTBOX_TRY(check_slot(slot));
    // First a snapshot, then the stream: what the stream lacks was confirmed, or comes later than
    // the snapshot. So all that the snapshot has must be in the log of the server, to its end.
    OUTBOX_TRY(const Rows snapshot, connection_.exec(&Queries::moment));
    OUTBOX_TRY(connection_.exec(&Queries::force_flush));
    OUTBOX_TRY(const SequenceReading newest, read_sequence(connection_));
    OUTBOX_TRY(const Unconfirmed found, read_unconfirmed(slot, snapshot.text(0, 0)));
    if (found.removed > 0)
      return fail(Errc::not_found,
                  "of " + std::to_string(found.removed) + " transactions that the slot " +
                      std::string(slot) + " has not confirmed the events were removed from the log",
                  "let the connector send them before it stops for good");
    return NewStart{.kind = NewStart::Kind::after,
                    .after = found.first ? *found.first - 1 : newest.value,
                    .snapshot = snapshot.text(0, 0),
                    .bound = newest.value,
                    .incarnation = newest.incarnation};
  }

  [[nodiscard]] Result<ResetPlan> plan_reset(std::string_view name, const NewStart& start,
                                             bool with_headers) override {
    OUTBOX_TRY(const sql::FoundSubscription found, find(name));
    const std::int32_t id = found.id;
    ResetPlan plan;
    OUTBOX_TRY(const Rows counts, connection_.exec_with(&Queries::no_limits, queries_.count_reset,
                                                        {id, seq_or_null(start), with_headers}));
    plan.counts = counts.list([&](int row) {
      return ResetCount{.aggregate_type = counts.text(row, 0),
                        .event_type = counts.text(row, 1),
                        .headers = counts.text(row, 2),
                        .again = counts.int8(row, 3),
                        .skipped = counts.int8(row, 4)};
    });
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
      auto begun =
          connection_.exec(queries_.begin_again,
                           {id, start.kind == NewStart::Kind::now, place.snapshot, place.position,
                            place.bound, place.incarnation, count(ledger.parked),
                            hash(ledger.parked), count(ledger.delivered), hash(ledger.delivered)});
      // The statement raises OX001 on another server than the place was read from.
      if (!begun && begun.error().origin != "pg:OX001") return pass(begun);
      if (!begun || begun->empty())
        return fail(Errc::unavailable,
                    "the database server crashed or was replaced since its place was read: nothing "
                    "was changed",
                    "run the command again");
      OUTBOX_TRY(sql::record(connection_, {.name = name}, 1));
      return Decision::commit;
    });
  }

 private:
  [[nodiscard]] Status check_slot(std::string_view slot) {
    OUTBOX_TRY(const Rows found, connection_.exec(queries_.slot, {slot}));
    const std::string name(slot);
    if (found.empty())
      return fail(Errc::not_found, "there is no replication slot " + name,
                  "SELECT slot_name FROM pg_replication_slots");
    if (found.text(0, 0) != "logical")
      return fail(Errc::invalid_argument, "the slot " + name + " is " + found.text(0, 0),
                  "that of a connector is logical");
    if (found.text(0, 1) != "pgoutput")
      return fail(Errc::invalid_argument, "the slot " + name + " uses " + found.text(0, 1),
                  "only what pgoutput sends can be read: plugin.name = pgoutput");
    if (!found.boolean(0, 3))
      return fail(Errc::invalid_argument,
                  "the slot " + name + " is of the database " + found.text(0, 2),
                  "the slot of a connector that reads this database");
    if (found.int4(0, 4) != 0)
      return fail(Errc::unavailable,
                  "the slot " + name + " is in use by pid " + std::to_string(found.int4(0, 4)),
                  "stop the connector first");
    return {};
  }

  struct Unconfirmed {
    std::optional<std::int64_t> first{};  ///< The first event.
    std::int64_t removed{0};              ///< Transactions whose events were removed.
  };

  /// The stream can only be read with a publication that was there when the slot stood where it
  /// stands. Which one the connector uses is not told, and each may leave out other events, so what
  /// any of them has counts.
  [[nodiscard]] Result<Unconfirmed> read_unconfirmed(std::string_view slot,
                                                     const std::string& snapshot) {
    OUTBOX_TRY(const Rows publications, connection_.exec(queries_.publications));
    std::optional<Unconfirmed> all;
    for (int row = 0; row < publications.size(); ++row) {
      auto found = connection_.exec_with(&Queries::no_limits, queries_.unconfirmed,
                                         {slot, publications.text(row, 0), snapshot});
      if (!found && found.error().origin == "pg:42704") continue;
      if (!found) return pass(found);
      if (!all) all.emplace();
      all->removed = std::max(all->removed, found->int8(0, 1));
      if (found->is_null(0, 0)) continue;
      all->first = std::min(all->first.value_or(found->int8(0, 0)), found->int8(0, 0));
    }
    if (all) return *all;
    return fail(Errc::not_found,
                "no publication has had the log since the slot " + std::string(slot) +
                    " stands where it does",
                "make the connector's publication again, and let the connector run once");
  }

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
    if (!start.snapshot.empty())
      return Place{.snapshot = start.snapshot,
                   .position = start.after,
                   .bound = start.bound,
                   .incarnation = start.incarnation};
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
