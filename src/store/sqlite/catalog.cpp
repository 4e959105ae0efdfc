// Subscriptions and what is known about them.
#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/process.hpp"
#include "event/task_queue.hpp"
#include "event/time_text.hpp"
#include "store/sql/parts.hpp"
#include "store/sqlite/clock.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/queries.hpp"
#include "store/sqlite/schema.hpp"
#include "store/stored_subscription.hpp"

namespace outbox::store::sqlite {
namespace {

class SqliteCatalog final : public sql::Catalog {
 public:
  explicit SqliteCatalog(std::unique_ptr<Connection> connection)
      : sql::Catalog(std::move(connection)), connection_(static_cast<Connection&>(db())) {}

  [[nodiscard]] Result<std::string> identity() override { return read_identity(connection_); }

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
      OUTBOX_TRY(add_totals(one));
      OUTBOX_TRY(const ParkedCounts parked, sql::count_parked(connection_, row.id));
      all.push_back({.row = std::move(row), .progress = std::move(one), .parked = parked});
    }
    return all;
  }

  [[nodiscard]] Result<StoreFigures> figures() override {
    OUTBOX_TRY(const Statement size, connection_.query(query::kFileSize));
    StoreFigures figures{.bytes = {{"file", size.integer(0)}}};
    OUTBOX_TRY(const Statement oldest, connection_.query(query::kFirstAfter, std::int64_t{0}));
    if (oldest.has_row()) figures.oldest_event_us = oldest.integer(0);
    return figures;
  }

  [[nodiscard]] Result<std::vector<RelayRow>> relays() override {
    OUTBOX_TRY(Statement row, connection_.query(query::kRelays));
    std::vector<RelayRow> relays;
    while (row.has_row()) {
      const RelayMember member = read_member(row);
      relays.push_back({.id = member.id,
                        .name = member.name,
                        .owner = !row.is_null(10),
                        .alive = !is_dead(member, self_, monotonic_us()),
                        .generation = row.integer(10),
                        .heartbeat_at = row.text(9),
                        .lanes = lanes_by_group(row.text(11))});
      OUTBOX_TRY(row.next());
    }
    return relays;
  }

 private:
  /// Looks without the write lock, since a relay that starts beside busy writers usually has
  /// nothing to change.
  [[nodiscard]] Result<bool> is_applied(const SubscriptionSpec& spec, const std::string& config,
                                        Wanted wanted) override {
    if (wanted == Wanted::a_new_one) return false;
    OUTBOX_TRY(const auto found, sql::find_subscription(connection_, spec.name));
    return found && same_config(spec.name, found->config, config);
  }

  Connection& connection_;
  const ProcessIdentity self_{this_process()};
};

}  // namespace

std::unique_ptr<Catalog> make_catalog(Connection connection) {
  return std::make_unique<SqliteCatalog>(std::make_unique<Connection>(std::move(connection)));
}

}  // namespace outbox::store::sqlite
