// Subscriptions and what is known about them.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/process.hpp"
#include "event/group.hpp"
#include "event/spec.hpp"
#include "event/task_queue.hpp"
#include "event/time_text.hpp"
#include "store/common/subscription.hpp"
#include "store/former_name.hpp"
#include "store/sqlite/clock.hpp"
#include "store/sqlite/member.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/queries.hpp"
#include "store/sqlite/schema.hpp"
#include "store/sqlite/subscription_queries.hpp"
#include "store/subscription_changes.hpp"

namespace outbox::store::sqlite {
namespace {

/// A row of query::kSubscriptions.
SubscriptionRow subscription_of(const Statement& row) {
  SubscriptionRow result;
  result.id = static_cast<std::int32_t>(row.integer(0));
  result.config_version = static_cast<std::int32_t>(row.integer(3));
  result.state = state_of(row.bytes(4));
  result.reason = row.text(5);
  if (!row.is_null(6)) result.stopped_seq = row.integer(6);
  result.stopped_event = row.text(7);
  result.trouble = row.text(8);
  result.trouble_since = row.text(9);
  result.parked_version = static_cast<std::int32_t>(row.integer(10));
  result.group = row.text(11);
  result.group_generation = row.integer(12);
  if (auto relay = EventId::parse(row.bytes(13))) result.trouble_relay = *relay;
  result.replay = row.integer(14);
  read_config(result, row.bytes(1), row.bytes(2));
  return result;
}

class SqliteCatalog final : public Catalog {
 public:
  explicit SqliteCatalog(Connection connection) : connection_(std::move(connection)) {}

  [[nodiscard]] Result<std::string> identity() override { return identity_of(connection_); }

  [[nodiscard]] Result<std::vector<SubscriptionRow>> subscriptions() override {
    OUTBOX_TRY(auto all, list<SubscriptionRow>(query::kSubscriptions, subscription_of));
    note_types_of_their_own(all);
    return all;
  }

  [[nodiscard]] Result<bool> apply(const SubscriptionSpec& spec) override {
    if (Status status = event::validate(spec); !status) return pass(status);
    const std::string config = event::to_json(spec);
    // First without the write lock: a relay that starts beside busy writers usually has nothing to change.
    OUTBOX_TRY(std::optional<Found> found, find(spec.name));
    if (found && same_config(spec.name, found->config, config)) return false;
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    OUTBOX_TRY(found, find(spec.name));
    if (found && same_config(spec.name, found->config, config)) return false;
    if (found) {
      if (Status status = check_same_type(spec, found->config); !status) return pass(status);
    }
    Status written = found ? change(*found, spec, config) : create(spec, config);
    if (written) written = transaction.commit();
    if (!written) return pass(written);
    return true;
  }

  [[nodiscard]] Status create(const SubscriptionSpec& spec) override {
    if (Status status = event::validate(spec); !status) return status;
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    OUTBOX_TRY(const std::optional<Found> found, find(spec.name));
    if (found) return name_taken(spec.name);
    Status written = connection_.run(query::kForgetFormerName, spec.name);
    if (written) written = create(spec, event::to_json(spec));
    return written ? transaction.commit() : written;
  }

  [[nodiscard]] Status pause(std::string_view name, std::string_view reason) override {
    return change(connection_.run(query::kPause, name, reason), name);
  }

  [[nodiscard]] Status resume(std::string_view name) override {
    return change(connection_.run(query::kResume, name), name);
  }

  [[nodiscard]] Result<bool> stop(std::int32_t id, std::int64_t generation, std::string_view reason,
                                  std::int64_t seq, const EventId& event) override {
    Status stopped = connection_.run(query::kStop, id, generation, reason, seq, event.str());
    if (!stopped) return pass(stopped);
    return connection_.changes() > 0;
  }

  [[nodiscard]] Status report_trouble(std::int32_t id, std::int64_t generation,
                                      std::string_view trouble, const EventId& relay) override {
    return connection_.run(query::kReportTrouble, id, generation, trouble, relay.str());
  }

  [[nodiscard]] Result<SubscriptionProgress> progress(const SubscriptionRow& subscription,
                                                      std::int64_t pending_limit) override {
    SubscriptionProgress progress;
    progress.id = subscription.id;
    OUTBOX_TRY(const Statement cursor, connection_.query(query::kNewestCursor, subscription.id));
    if (!cursor.has_row())
      return event::is_of_type(subscription.spec) ? Result<SubscriptionProgress>(progress)
                                                  : no_cursor(subscription.spec.name);
    const std::int64_t position = cursor.integer(0);
    progress.generation = cursor.integer(1);
    OUTBOX_TRY(const Statement count,
               connection_.query(query::kCountAfter, position, pending_limit + 1));
    progress.pending = count.integer(0);
    progress.cap_pending(pending_limit);
    OUTBOX_TRY(const Statement oldest, connection_.query(query::kFirstAfter, position));
    if (oldest.has_row()) {
      const std::int64_t created_us = oldest.integer(0);
      progress.oldest_pending_at = event::time_text(created_us);
      progress.lag = std::chrono::microseconds(std::max<std::int64_t>(wall_us() - created_us, 0));
    }
    return progress;
  }

  [[nodiscard]] Status add_totals(SubscriptionProgress& progress) override {
    OUTBOX_TRY(const Statement totals, connection_.query(query::kSettledTotals, progress.id));
    if (!totals.has_row()) return {};
    progress.acked = totals.integer(0);
    progress.filtered = totals.integer(1);
    if (!totals.is_null(2)) progress.last_settled_at = event::time_text(totals.integer(2));
    return {};
  }

  [[nodiscard]] Result<std::vector<SubscriptionOverview>> overview(
      std::int64_t pending_limit) override {
    OUTBOX_TRY(std::vector<SubscriptionRow> rows, subscriptions());
    std::vector<SubscriptionOverview> all;
    for (SubscriptionRow& row : rows) {
      OUTBOX_TRY(SubscriptionProgress one, progress(row, pending_limit));
      if (Status status = add_totals(one); !status) return pass(status);
      OUTBOX_TRY(const Statement parked, connection_.query(query::kCountParked, row.id));
      all.push_back({.row = std::move(row),
                     .progress = std::move(one),
                     .parked = {.retrying = parked.integer(0),
                                .waiting = parked.integer(1),
                                .dead = parked.integer(2)}});
    }
    return all;
  }

  [[nodiscard]] Result<std::vector<RelayRow>> relays() override {
    return list<RelayRow>(query::kRelays, [this](const Statement& row) {
      const RelayMember member = member_of(row);
      return RelayRow{.id = member.id,
                      .name = member.name,
                      .owner = !row.is_null(10),
                      .alive = !is_dead(member, self_, monotonic_us()),
                      .generation = row.integer(10),
                      .heartbeat_at = row.text(9),
                      .lanes = row.text(11)};
    });
  }

 private:
  struct Found {
    std::int64_t id{0};
    std::string config;
    std::string group;
  };

  template <class T, class Read>
  [[nodiscard]] Result<std::vector<T>> list(std::string_view sql, Read read) {
    OUTBOX_TRY(Statement row, connection_.query(sql));
    std::vector<T> rows;
    while (row.has_row()) {
      rows.push_back(read(row));
      if (Status status = row.next(); !status) return pass(status);
    }
    return rows;
  }

  [[nodiscard]] Result<std::optional<Found>> find(std::string_view name) {
    OUTBOX_TRY(const Statement row, connection_.query(query::kSubscriptionByName, name));
    if (!row.has_row()) return std::optional<Found>{};
    return std::optional<Found>(
        Found{.id = row.integer(0), .config = row.text(1), .group = row.text(2)});
  }

  [[nodiscard]] Status change(const Found& found, const SubscriptionSpec& spec,
                              const std::string& config) {
    Status status = connection_.run(query::kChangeSubscription, found.id, config);
    const std::string group = event::group_of(spec, found.group);
    if (!status || found.group == group) return status;
    status = connection_.run(query::kRaiseGeneration);
    return status ? connection_.run(query::kChangeGroup, found.id, group) : status;
  }

  // In the transaction of apply(): the write lock is ours, so "now" neither misses nor repeats an event that is being written.
  [[nodiscard]] Status create(const SubscriptionSpec& spec, const std::string& config) {
    {
      OUTBOX_TRY(const Statement former, connection_.query(query::kFormerName, spec.name));
      if (former.has_row()) return fail(renamed(spec.name, former.bytes(0)));
    }
    std::int64_t position = 0;
    if (spec.start == "now") {
      OUTBOX_TRY(position, connection_.integer(query::kNewestSeq));
    }
    const std::string group = event::group_of(spec);
    OUTBOX_TRY(const Statement created,
               connection_.query(query::kCreateSubscription, spec.name, config, group));
    // That of a type begins where that of its queue stands, when it starts.
    if (event::is_of_type(spec)) return {};
    return connection_.run(query::kFirstSettlement, created.integer(0), position, wall_us());
  }

  /// After an UPDATE by name.
  [[nodiscard]] Status change(Status updated, std::string_view name) const {
    if (updated && connection_.changes() == 0) return no_such_subscription(name);
    return updated;
  }

  Connection connection_;
  const ProcessIdentity self_{this_process()};
};

}  // namespace

std::unique_ptr<Catalog> make_catalog(Connection connection) {
  return std::make_unique<SqliteCatalog>(std::move(connection));
}

}  // namespace outbox::store::sqlite
