// Subscriptions, what they have done and who delivers them, in the tables subscription, settlement and relay.
#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "event/spec.hpp"
#include "event/time_text.hpp"
#include "store/common/subscription.hpp"
#include "store/postgres/mark.hpp"
#include "store/postgres/parts.hpp"
#include "store/postgres/snapshot.hpp"
#include "store/postgres/strands.hpp"
#include "store/postgres/transact.hpp"

namespace outbox::store::postgres {
namespace {

SubscriptionRow row_of(const Rows& rows, int row) {
  SubscriptionRow result;
  result.id = rows.int4(row, 0);
  result.config_version = rows.int4(row, 3);
  result.state = state_of(rows.bytes(row, 4));
  result.reason = rows.text(row, 5);
  if (!rows.is_null(row, 6)) result.stopped_seq = rows.int8(row, 6);
  if (!rows.is_null(row, 7)) result.stopped_event = rows.uuid(row, 7).str();
  result.trouble = rows.text(row, 8);
  if (!rows.is_null(row, 9)) result.trouble_since = rows.text(row, 9);
  read_config(result, rows.bytes(row, 1), rows.bytes(row, 2));
  return result;
}

class PostgresCatalog final : public Catalog {
 public:
  PostgresCatalog(Connection connection, std::shared_ptr<const Queries> queries)
      : connection_(std::move(connection)), queries_(std::move(queries)) {}

  [[nodiscard]] Result<std::string> identity() override {
    auto rows = connection_.exec(queries_->identity);
    if (!rows) return pass(rows);
    if (rows->empty())
      return fail(Errc::corrupt, "the table meta is empty", "it must hold one row");
    return rows->text(0, 0);
  }

  [[nodiscard]] Result<std::vector<SubscriptionRow>> subscriptions() override {
    auto rows = connection_.exec(queries_->subscriptions);
    if (!rows) return pass(rows);
    std::vector<SubscriptionRow> list;
    list.reserve(static_cast<std::size_t>(rows->size()));
    for (int row = 0; row < rows->size(); ++row) list.push_back(row_of(*rows, row));
    return list;
  }

  [[nodiscard]] Result<bool> apply(const SubscriptionSpec& spec) override {
    if (Status status = event::validate(spec); !status) return pass(status);
    const std::string config = event::to_json(spec);
    if (spec.start == "now") {
      if (Status status = mark_the_start(spec.name); !status) return pass(status);
    }
    // Again when another process created it between our select and our insert.
    for (int attempt = 1;; ++attempt) {
      auto applied = apply_once(spec, config);
      if (!applied) return pass(applied);
      if (*applied != Applied::again || attempt == 3) return *applied == Applied::changed;
    }
  }

  [[nodiscard]] Status pause(std::string_view name, std::string_view reason) override {
    return change(queries_->pause,
                  {Param::text(std::string(name)), Param::text(std::string(reason))}, name);
  }

  [[nodiscard]] Status resume(std::string_view name) override {
    return change(queries_->resume, {Param::text(std::string(name))}, name);
  }

  [[nodiscard]] Result<bool> stop(std::int32_t id, std::int64_t generation, std::string_view reason,
                                  std::int64_t seq, const EventId& event) override {
    auto stopped = connection_.exec(
        queries_->stop, {Param::int4(id), Param::int8(generation), Param::text(std::string(reason)),
                         Param::int8(seq), Param::uuid(event)});
    if (!stopped) return pass(stopped);
    return !stopped->empty();
  }

  [[nodiscard]] Status report_trouble(std::int32_t id, std::int64_t generation,
                                      std::string_view trouble) override {
    auto reported = connection_.exec(
        queries_->report_trouble,
        {Param::int4(id), Param::int8(generation), Param::text(std::string(trouble))});
    if (!reported) return pass(reported);
    return {};
  }

  [[nodiscard]] Result<SubscriptionProgress> progress(const SubscriptionRow& subscription,
                                                      std::int64_t pending_limit) override {
    SubscriptionProgress progress;
    progress.id = subscription.id;
    auto rows = connection_.exec(queries_->cursors, {Param::int4(subscription.id)});
    if (!rows) return pass(rows);
    if (rows->empty()) return no_cursor(subscription.spec.name);
    std::int64_t oldest_us = std::numeric_limits<std::int64_t>::max();
    auto strands = strands_of(*rows);
    if (!strands) return pass(strands);
    for (const Strand& strand : *strands) {
      progress.generation = std::max(progress.generation, strand.generation);
      const std::int64_t left = pending_limit + 1 - progress.pending;
      if (left <= 0) break;
      if (Status status = add_pending(progress, strand, left, oldest_us); !status)
        return pass(status);
    }
    progress.cap_pending(pending_limit);
    if (progress.pending > 0) progress.oldest_pending_at = event::time_text(oldest_us);
    return progress;
  }

  [[nodiscard]] Status add_totals(SubscriptionProgress& progress) override {
    auto rows = exec_with(connection_, *queries_, queries_->plan_settings, queries_->totals,
                          {Param::int4(progress.id)});
    if (!rows) return pass(rows);
    const Rows& totals = *rows;
    if (totals.empty()) return {};
    progress.acked = totals.int8(0, 0);
    progress.filtered = totals.int8(0, 1);
    if (!totals.is_null(0, 2)) progress.last_settled_at = totals.text(0, 2);
    return {};
  }

  [[nodiscard]] Result<std::vector<RelayRow>> relays() override {
    auto rows = connection_.exec(queries_->relays);
    if (!rows) return pass(rows);
    std::vector<RelayRow> list;
    for (int row = 0; row < rows->size(); ++row) {
      RelayRow relay;
      relay.id = rows->uuid(row, 0).str();
      relay.name = rows->text(row, 1);
      relay.owner = !rows->is_null(row, 2);
      relay.generation = relay.owner ? rows->int8(row, 2) : 0;
      relay.alive = rows->boolean(row, 3);
      relay.heartbeat_at = rows->text(row, 4);
      list.push_back(std::move(relay));
    }
    return list;
  }

 private:
  enum class Applied : std::uint8_t { nothing, changed, again };

  /// A new subscription that starts now gets a mark below its first snapshot: without one its first fetch would read late
  /// events in the whole of the current partition.
  [[nodiscard]] Status mark_the_start(const std::string& name) {
    auto rows = subscriptions();
    if (!rows) return pass(rows);
    if (std::any_of(rows->begin(), rows->end(),
                    [&](const auto& row) { return row.spec.name == name; }))
      return {};
    auto reading = read_sequence(connection_, *queries_);
    if (!reading) return pass(reading);
    auto marked = write_mark(connection_, *queries_, *reading);
    if (!marked) return pass(marked);
    return {};
  }

  [[nodiscard]] Result<Applied> apply_once(const SubscriptionSpec& spec,
                                           const std::string& config) {
    Applied applied = Applied::nothing;
    const auto body = [&](Connection& connection) -> Result<Decision> {
      // A crash of the database must not take a first cursor back that was already used.
      if (auto flushed = connection.exec(queries_->flushed); !flushed) return pass(flushed);
      auto found = connection.exec(queries_->find_subscription, {Param::text(spec.name)});
      if (!found) return pass(found);
      applied = Applied::changed;
      if (!found->empty()) {
        if (same_config(spec.name, found->bytes(0, 1), config)) {
          applied = Applied::nothing;
          return Decision::rollback;
        }
        auto changed = connection.exec(queries_->change_subscription,
                                       {Param::int4(found->int4(0, 0)), Param::text(config)});
        if (!changed) return pass(changed);
        return Decision::commit;
      }
      auto created = connection.exec(queries_->create_subscription,
                                     {Param::text(spec.name), Param::text(config)});
      if (!created) return pass(created);
      if (created->empty()) {
        applied = Applied::again;
        return Decision::rollback;
      }
      auto first =
          connection.exec(queries_->first_settlement,
                          {Param::int4(created->int4(0, 0)), Param::boolean(spec.start == "now")});
      if (!first) return pass(first);
      return Decision::commit;
    };
    if (Status status = transact(connection_, *queries_, body); !status) return pass(status);
    return applied;
  }

  [[nodiscard]] Status change(const Query& update, Params params, std::string_view which) {
    auto changed = connection_.exec(update, std::move(params));
    if (!changed) return pass(changed);
    if (!changed->empty()) return {};
    return no_such_subscription(which);
  }

  [[nodiscard]] Status add_pending(SubscriptionProgress& progress, const Strand& strand,
                                   std::int64_t limit, std::int64_t& oldest_us) {
    const Cursor& cursor = strand.cursor;
    auto s1 = parse_snapshot(cursor.s1);
    if (!s1) return pass(s1);
    auto s2 = parse_snapshot(cursor.drained() ? cursor.s1 : cursor.s2);
    if (!s2) return pass(s2);
    const Param lanes = Param::int8(static_cast<std::int64_t>(strand.lanes));
    const bool drained = cursor.drained();
    Params params = drained ? Params{Param::text(std::to_string(s1->xmax)),
                                     Param::xid8_array(s1->xip), lanes, Param::int8(limit)}
                            : Params{Param::text(cursor.s1),
                                     Param::text(std::to_string(s1->xmin)),
                                     lanes,
                                     Param::int8(limit),
                                     Param::int8(cursor.position),
                                     Param::text(std::to_string(s2->xmax)),
                                     Param::xid8_array(s2->xip)};
    auto counted =
        exec_with(connection_, *queries_, queries_->plan_settings,
                  drained ? queries_->pending_drained : queries_->pending_begun, std::move(params));
    if (!counted) return pass(counted);
    const Rows& rows = *counted;
    progress.pending += rows.int8(0, 0);
    if (!rows.is_null(0, 1)) {
      oldest_us = std::min(oldest_us, rows.time_us(0, 1));
      progress.lag = std::max(progress.lag, std::chrono::microseconds(rows.int8(0, 2)));
    }
    return {};
  }

  Connection connection_;
  std::shared_ptr<const Queries> queries_;
};

}  // namespace

std::unique_ptr<Catalog> make_catalog(Connection connection,
                                      std::shared_ptr<const Queries> queries) {
  return std::make_unique<PostgresCatalog>(std::move(connection), std::move(queries));
}

}  // namespace outbox::store::postgres
