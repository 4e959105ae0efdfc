// Subscriptions, what they have done and who delivers them, in the tables subscription, settlement
// and relay.
#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "event/task_queue.hpp"
#include "event/time_text.hpp"
#include "store/postgres/marks.hpp"
#include "store/postgres/overview.hpp"
#include "store/postgres/parts.hpp"
#include "store/postgres/strands.hpp"
#include "store/sql/parts.hpp"
#include "store/stored_subscription.hpp"

namespace outbox::store::postgres {
namespace {

RelayRow read_relay(const Rows& rows, int row) {
  constexpr std::string_view kPolls = "poll: ";
  const bool owner = !rows.is_null(row, 2);
  const std::string_view feed = rows.bytes(row, 6);
  const bool troubled = feed.starts_with(kPolls);
  return {.id = rows.uuid(row, 0).str(),
          .name = rows.text(row, 1),
          .owner = owner,
          .alive = rows.boolean(row, 3),
          .generation = owner ? rows.int8(row, 2) : 0,
          .heartbeat_at = rows.text(row, 4),
          .lanes = lanes_by_group(rows.text(row, 5)),
          .feed = troubled ? "poll" : std::string(feed),
          .feed_trouble = troubled ? std::string(feed.substr(kPolls.size())) : ""};
}

class PostgresCatalog final : public sql::Catalog {
 public:
  explicit PostgresCatalog(std::unique_ptr<Connection> connection)
      : sql::Catalog(std::move(connection)), connection_(static_cast<Connection&>(db())) {}

  [[nodiscard]] Result<std::string> identity() override {
    OUTBOX_TRY(const Rows rows, connection_.exec(&Queries::identity));
    if (!rows.empty()) return rows.text(0, 0);
    return fail(Errc::corrupt, "the table meta is empty", "it must hold one row");
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
      OUTBOX_TRY(count_pending(progress, strand, left, oldest_us));
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
    return make_overview(connection_, std::move(rows), pending_limit);
  }

  [[nodiscard]] Result<std::vector<RelayRow>> relays() override {
    OUTBOX_TRY(const Rows rows, connection_.exec(&Queries::relays));
    return rows.list([&](int row) { return read_relay(rows, row); });
  }

  [[nodiscard]] Result<StoreFigures> figures() override {
    OUTBOX_TRY(const Rows rows, connection_.exec(&Queries::figures));
    const auto time = [&](int column) {
      return rows.is_null(0, column) ? std::optional<std::int64_t>() : rows.int8(0, column);
    };
    return StoreFigures{.bytes = {{"events", rows.int8(0, 0)},
                                  {"progress", rows.int8(0, 1)},
                                  {"parked", rows.int8(0, 2)},
                                  {"rest", rows.int8(0, 3)}},
                        .partitions_ahead = rows.is_null(0, 4) ? 0 : rows.int8(0, 4),
                        .oldest_event_us = time(5),
                        .oldest_snapshot_us = time(6),
                        .has_snapshots = true};
  }

 private:
  /// A new subscription that starts now gets a mark below its first snapshot: without one its first
  /// fetch would read late events in the whole of the current partition.
  [[nodiscard]] Result<bool> is_applied(const SubscriptionSpec& spec, const std::string& /*config*/,
                                        Wanted /*wanted*/) override {
    if (spec.start != Start::now) return false;
    OUTBOX_TRY(const auto rows, subscriptions());
    if (std::any_of(rows.begin(), rows.end(),
                    [&](const auto& row) { return row.spec.name == spec.name; }))
      return false;
    OUTBOX_TRY(const SequenceReading reading, read_sequence(connection_));
    auto marked = write_mark(connection_, reading);
    return marked ? Result<bool>(false) : pass(marked);
  }

  [[nodiscard]] Status count_pending(SubscriptionProgress& progress, const Strand& strand,
                                     std::int64_t limit, std::int64_t& oldest_us) {
    OUTBOX_TRY(PendingQuery pending, pending_query(strand, limit));
    OUTBOX_TRY(const Rows counted, connection_.exec_with(&Queries::plan_settings, pending.query,
                                                         std::move(pending.params)));
    add_pending(counted, progress, oldest_us);
    return {};
  }

  Connection& connection_;
};

}  // namespace

std::unique_ptr<Catalog> make_catalog(Connection connection) {
  return std::make_unique<PostgresCatalog>(std::make_unique<Connection>(std::move(connection)));
}

}  // namespace outbox::store::postgres
