// Subscriptions, what they have done and who delivers them, in the tables subscription, settlement and relay.
#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "event/group.hpp"
#include "event/spec.hpp"
#include "event/task_queue.hpp"
#include "event/time_text.hpp"
#include "store/common/subscription.hpp"
#include "store/former_name.hpp"
#include "store/postgres/marks.hpp"
#include "store/postgres/overview.hpp"
#include "store/postgres/parts.hpp"
#include "store/postgres/strands.hpp"

namespace outbox::store::postgres {
namespace {

SubscriptionRow subscription_of(const Rows& rows, int row) {
  SubscriptionRow result;
  result.id = rows.int4(row, 0);
  result.config_version = rows.int4(row, 3);
  result.state = state_of(rows.bytes(row, 4));
  result.reason = rows.text(row, 5);
  if (!rows.is_null(row, 6)) result.stopped_seq = rows.int8(row, 6);
  if (!rows.is_null(row, 7)) result.stopped_event = rows.uuid(row, 7).str();
  result.trouble = rows.text(row, 8);
  result.trouble_since = rows.text(row, 9);
  result.parked_version = rows.int4(row, 10);
  result.group = rows.text(row, 11);
  result.group_generation = rows.int8(row, 12);
  if (!rows.is_null(row, 13)) result.trouble_relay = rows.uuid(row, 13);
  if (!rows.is_null(row, 14)) result.replay = rows.int8(row, 14);
  read_config(result, rows.bytes(row, 1), rows.bytes(row, 2));
  return result;
}

RelayRow relay_of(const Rows& rows, int row) {
  const bool owner = !rows.is_null(row, 2);
  return {.id = rows.uuid(row, 0).str(),
          .name = rows.text(row, 1),
          .owner = owner,
          .alive = rows.boolean(row, 3),
          .generation = owner ? rows.int8(row, 2) : 0,
          .heartbeat_at = rows.text(row, 4),
          .lanes = rows.text(row, 5)};
}

class PostgresCatalog final : public Catalog {
 public:
  explicit PostgresCatalog(Connection connection) : connection_(std::move(connection)) {}

  [[nodiscard]] Result<std::string> identity() override {
    OUTBOX_TRY(const Rows rows, connection_.exec(&Queries::identity));
    if (!rows.empty()) return rows.text(0, 0);
    return fail(Errc::corrupt, "the table meta is empty", "it must hold one row");
  }

  [[nodiscard]] Result<std::vector<SubscriptionRow>> subscriptions() override {
    OUTBOX_TRY(auto all, list<SubscriptionRow>(&Queries::subscriptions, subscription_of));
    note_types_of_their_own(all);
    return all;
  }

  [[nodiscard]] Result<bool> apply(const SubscriptionSpec& spec) override {
    return apply(spec, Wanted::either);
  }

  [[nodiscard]] Status create(const SubscriptionSpec& spec) override {
    auto created = apply(spec, Wanted::a_new_one);
    return created ? Status{} : pass(created);
  }

  [[nodiscard]] Status pause(std::string_view name, std::string_view reason) override {
    return change(&Queries::pause, {name, reason}, name);
  }

  [[nodiscard]] Status resume(std::string_view name) override {
    return change(&Queries::resume, {name}, name);
  }

  [[nodiscard]] Result<bool> stop(std::int32_t id, std::int64_t generation, std::string_view reason,
                                  std::int64_t seq, const EventId& event) override {
    OUTBOX_TRY(const Rows stopped,
               connection_.exec(&Queries::stop, {id, generation, reason, seq, event}));
    return !stopped.empty();
  }

  [[nodiscard]] Status report_trouble(std::int32_t id, std::int64_t generation,
                                      std::string_view trouble, const EventId& relay) override {
    return connection_.run(&Queries::report_trouble, {id, generation, trouble, relay});
  }

  [[nodiscard]] Result<SubscriptionProgress> progress(const SubscriptionRow& subscription,
                                                      std::int64_t pending_limit) override {
    SubscriptionProgress progress;
    progress.id = subscription.id;
    OUTBOX_TRY(const std::vector<Strand> strands,
               read_strands(connection_, subscription.id, kAllLanes));
    if (strands.empty() && !event::is_of_type(subscription.spec))
      return no_cursor(subscription.spec.name);
    std::int64_t oldest_us = std::numeric_limits<std::int64_t>::max();
    for (const Strand& strand : strands) {
      progress.generation = std::max(progress.generation, strand.generation);
      const std::int64_t left = pending_limit + 1 - progress.pending;
      if (left <= 0) break;
      if (Status status = count_pending(progress, strand, left, oldest_us); !status)
        return pass(status);
    }
    progress.cap_pending(pending_limit);
    if (progress.pending > 0) progress.oldest_pending_at = event::time_text(oldest_us);
    return progress;
  }

  [[nodiscard]] Status add_totals(SubscriptionProgress& progress) override {
    OUTBOX_TRY(const Rows cursors,
               connection_.exec_with(&Queries::plan_settings, &Queries::standing, {progress.id}));
    OUTBOX_TRY(const Rows last,
               connection_.exec_with(&Queries::plan_settings, &Queries::last, {progress.id}));
    postgres::add_totals(cursors, last, progress);
    return {};
  }

  [[nodiscard]] Result<std::vector<SubscriptionOverview>> overview(
      std::int64_t pending_limit) override {
    OUTBOX_TRY(std::vector<SubscriptionRow> rows, subscriptions());
    return overview_of(connection_, std::move(rows), pending_limit);
  }

  [[nodiscard]] Result<std::vector<RelayRow>> relays() override {
    return list<RelayRow>(&Queries::relays, relay_of);
  }

 private:
  enum class Applied : std::uint8_t { nothing, changed, again };
  enum class Wanted : std::uint8_t { either, a_new_one };

  [[nodiscard]] Result<bool> apply(const SubscriptionSpec& spec, Wanted wanted) {
    if (Status status = event::validate(spec); !status) return pass(status);
    const std::string config = event::to_json(spec);
    if (spec.start == "now") {
      if (Status status = mark_the_start(spec.name); !status) return pass(status);
    }
    // Again when another process created it between our select and our insert.
    for (int attempt = 1;; ++attempt) {
      OUTBOX_TRY(const Applied applied, apply_once(spec, config, wanted));
      if (applied != Applied::again || attempt == 3) return applied == Applied::changed;
    }
  }

  /// A former name is refused, or forgotten where a new subscription is wanted.
  [[nodiscard]] Status release(const std::string& name, Wanted wanted) {
    if (wanted == Wanted::a_new_one) return connection_.run(&Queries::forget_former_name, {name});
    OUTBOX_TRY(const Rows former, connection_.exec(&Queries::former_name, {name}));
    return former.empty() ? Status{} : fail(renamed(name, former.bytes(0, 0)));
  }

  template <class T>
  [[nodiscard]] Result<std::vector<T>> list(Connection::Named query, T (*read)(const Rows&, int)) {
    OUTBOX_TRY(const Rows rows, connection_.exec(query));
    std::vector<T> values;
    values.reserve(static_cast<std::size_t>(rows.size()));
    for (int row = 0; row < rows.size(); ++row) values.push_back(read(rows, row));
    return values;
  }

  /// A new subscription that starts now gets a mark below its first snapshot: without one its first fetch would read late
  /// events in the whole of the current partition.
  [[nodiscard]] Status mark_the_start(const std::string& name) {
    OUTBOX_TRY(const auto rows, subscriptions());
    if (std::any_of(rows.begin(), rows.end(),
                    [&](const auto& row) { return row.spec.name == name; }))
      return {};
    OUTBOX_TRY(const SequenceReading reading, read_sequence(connection_));
    auto marked = write_mark(connection_, reading);
    return marked ? Status{} : pass(marked);
  }

  [[nodiscard]] Result<Applied> apply_once(const SubscriptionSpec& spec, const std::string& config,
                                           Wanted wanted) {
    Applied applied = Applied::changed;
    const auto body = [&]() -> Result<Decision> {
      // A crash of the database must not take a first cursor back that was already used.
      if (Status status = connection_.run(&Queries::flushed); !status) return pass(status);
      OUTBOX_TRY(const Rows found, connection_.exec(&Queries::find_subscription, {spec.name}));
      if (!found.empty() && wanted == Wanted::a_new_one) return name_taken(spec.name);
      if (!found.empty() && same_config(spec.name, found.bytes(0, 1), config)) {
        applied = Applied::nothing;
        return Decision::rollback;
      }
      Status written;
      if (!found.empty()) {
        if (Status status = check_same_type(spec, found.bytes(0, 1)); !status) return pass(status);
        written = connection_.run(&Queries::change_subscription, {found.int4(0, 0), config});
        const std::string group = event::group_of(spec, found.bytes(0, 2));
        if (written && found.bytes(0, 2) != group)
          written = connection_.run(&Queries::change_group, {found.int4(0, 0), group});
      } else {
        if (Status status = connection_.run(&Queries::lock_fleet); !status) return pass(status);
        if (Status status = release(spec.name, wanted); !status) return pass(status);
        OUTBOX_TRY(const Rows created,
                   connection_.exec(&Queries::create_subscription,
                                    {spec.name, config, event::group_of(spec)}));
        if (created.empty()) {
          applied = Applied::again;
          return Decision::rollback;
        }
        // That of a type begins where that of its queue stands, when its lanes start next.
        if (!event::is_of_type(spec))
          written = connection_.run(&Queries::first_settlement,
                                    {created.int4(0, 0), spec.start == "now"});
      }
      if (!written) return pass(written);
      return Decision::commit;
    };
    if (Status status = connection_.transact(body); !status) return pass(status);
    return applied;
  }

  [[nodiscard]] Status change(Connection::Named update, Params params, std::string_view which) {
    OUTBOX_TRY(const Rows changed, connection_.exec(update, std::move(params)));
    return changed.empty() ? no_such_subscription(which) : Status{};
  }

  [[nodiscard]] Status count_pending(SubscriptionProgress& progress, const Strand& strand,
                                     std::int64_t limit, std::int64_t& oldest_us) {
    OUTBOX_TRY(PendingQuery pending, pending_query(strand, limit));
    OUTBOX_TRY(const Rows counted, connection_.exec_with(&Queries::plan_settings, pending.query,
                                                         std::move(pending.params)));
    add_pending(counted, progress, oldest_us);
    return {};
  }

  Connection connection_;
};

}  // namespace

std::unique_ptr<Catalog> make_catalog(Connection connection) {
  return std::make_unique<PostgresCatalog>(std::move(connection));
}

}  // namespace outbox::store::postgres
