// Renaming, resetting and dropping a subscription: the locks and the cursor; the rows are changed by 0009_subscriptions.sql.
#include "store/subscription_changes.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "event/group.hpp"
#include "store/common/subscription.hpp"
#include "store/postgres/marks.hpp"
#include "store/postgres/parked_ledger.hpp"
#include "store/postgres/parts.hpp"
#include "store/postgres/subscription_queries.hpp"

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

class PostgresSubscriptionChanges final : public SubscriptionChanges {
 public:
  explicit PostgresSubscriptionChanges(Connection connection)
      : connection_(std::move(connection)), queries_(connection_.queries().schema) {}

  [[nodiscard]] Result<std::vector<FormerName>> former_names() override {
    OUTBOX_TRY(const Rows rows, connection_.exec(queries_.former_names));
    std::vector<FormerName> names;
    names.reserve(static_cast<std::size_t>(rows.size()));
    for (int row = 0; row < rows.size(); ++row)
      names.push_back({.name = rows.text(row, 0), .subscription = rows.text(row, 1)});
    return names;
  }

  [[nodiscard]] Status rename(std::string_view name, std::string_view new_name) override {
    return connection_.transact([&]() -> Result<Decision> {
      OUTBOX_TRY(const Found found, lock(name));
      OUTBOX_TRY(const SubscriptionSpec spec, renamed_spec(name, found.config, new_name));
      OUTBOX_TRY(const Rows taken, connection_.exec(queries_.name_is_taken, {new_name}));
      if (taken.boolean(0, 0)) return name_taken(new_name);
      Status status = run(queries_.rename, {found.id, new_name});
      const std::string group = event::group_of(spec, found.group);
      if (status && group != found.group)
        status = connection_.run(&Queries::change_group, {found.id, group});
      if (!status) return pass(status);
      return Decision::commit;
    });
  }

  [[nodiscard]] Result<ResetPlan> plan_reset(std::string_view name, const NewStart& start,
                                             bool with_headers) override {
    OUTBOX_TRY(const Rows found, connection_.exec(&Queries::find_subscription, {name}));
    if (found.empty()) return fail(no_such_subscription(name).error());
    const std::int32_t id = found.int4(0, 0);
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
      OUTBOX_TRY(const Found found, lock_idle(name));
      OUTBOX_TRY(const Rows fresh, connection_.exec(queries_.restart, {found.id, seq_or_null(start),
                                                                       place.snapshot}));
      const std::int32_t id = fresh.int4(0, 0);
      ParkedLedger ledger;
      if (Status status = add_parked(connection_, id, ledger); !status) return pass(status);
      const auto count = [](const Tally& tally) { return static_cast<std::int32_t>(tally.count); };
      const auto hash = [](const Tally& tally) { return static_cast<std::int64_t>(tally.hash); };
      OUTBOX_TRY(
          const Rows begun,
          connection_.exec(queries_.begin_again,
                           {id, start.kind == NewStart::Kind::now, place.snapshot, place.position,
                            place.bound, place.incarnation, count(ledger.parked),
                            hash(ledger.parked), count(ledger.delivered), hash(ledger.delivered)}));
      if (begun.empty()) return fail(other_incarnation().value());
      return Decision::commit;
    });
  }

  [[nodiscard]] Status drop(std::string_view name) override {
    return connection_.transact([&]() -> Result<Decision> {
      OUTBOX_TRY(const Found found, lock_idle(name));
      if (Status status = run(queries_.drop, {found.id}); !status) return pass(status);
      return Decision::commit;
    });
  }

 private:
  struct Found {
    std::int32_t id{0};
    std::string config;
    std::string group;
  };
  /// In a pair that begins with nothing; null: none.
  struct Place {
    Param snapshot{Param::null()};
    Param position{Param::null()};
    Param bound{Param::null()};
    Param incarnation{Param::null()};
  };

  [[nodiscard]] Status run(const Query& query, Params params) {
    OUTBOX_TRY([[maybe_unused]] const Rows rows, connection_.exec(query, std::move(params)));
    return {};
  }

  /// The locks in the order of Catalog::apply().
  [[nodiscard]] Result<Found> lock(std::string_view name) {
    if (Status status = connection_.run(&Queries::flushed); !status) return pass(status);
    OUTBOX_TRY(const Rows found, connection_.exec(&Queries::find_subscription, {name}));
    if (found.empty()) return fail(no_such_subscription(name).error());
    return Found{.id = found.int4(0, 0), .config = found.text(0, 1), .group = found.text(0, 2)};
  }

  /// So that no relay parks or settles events of it meanwhile, and retention removes nothing.
  [[nodiscard]] Result<Found> lock_idle(std::string_view name) {
    OUTBOX_TRY(Found found, lock(name));
    if (Status status = connection_.run(&Queries::lock_fleet); !status) return pass(status);
    if (Status status = connection_.run(&Queries::lock_lanes, {found.group}); !status)
      return pass(status);
    OUTBOX_TRY(const Rows replay, connection_.exec(queries_.replay_runs, {found.id}));
    if (replay.boolean(0, 0)) return replay_runs(name);
    return found;
  }

  /// Before the transaction that uses it: the snapshot, then the sequence, which bounds what is visible in it and is a mark. A
  /// subscription that starts now gets a mark below its first snapshot, as one that is created.
  [[nodiscard]] Result<Place> read_place(const NewStart& start) {
    if (start.kind == NewStart::Kind::beginning) return Place{};
    OUTBOX_TRY(const Rows snapshot, connection_.exec(&Queries::moment));
    OUTBOX_TRY(const SequenceReading reading, read_sequence(connection_));
    if (start.kind == NewStart::Kind::now) {
      auto marked = write_mark(connection_, reading);
      if (!marked) return pass(marked);
      return Place{};
    }
    return Place{.snapshot = snapshot.text(0, 0),
                 .position = start.after,
                 .bound = reading.value,
                 .incarnation = reading.incarnation};
  }

  Connection connection_;
  const SubscriptionQueries queries_;
};

}  // namespace

std::unique_ptr<SubscriptionChanges> make_subscription_changes(Connection connection) {
  return std::make_unique<PostgresSubscriptionChanges>(std::move(connection));
}

}  // namespace outbox::store::postgres
