#include "store/sqlite/catalog.hpp"

#include <optional>

#include "base/error.hpp"
#include "event/spec.hpp"
#include "store/sqlite/clock.hpp"
#include "store/sqlite/membership.hpp"
#include "store/sqlite/queries.hpp"
#include "store/sqlite/schema.hpp"

namespace outbox::store::sqlite {
namespace {

SubscriptionState state_of(std::string_view text) {
  for (const auto state : {SubscriptionState::active, SubscriptionState::paused}) {
    if (text == to_string(state)) return state;
  }
  return SubscriptionState::stopped;
}

/// A row of query::kSubscriptions. One that cannot be read stands still, where a person can see it: it must not stop
/// the others.
SubscriptionRow row_of(const Statement& row) {
  SubscriptionRow result;
  result.id = static_cast<std::int32_t>(row.integer(0));
  result.config_version = static_cast<std::int32_t>(row.integer(3));
  result.state = state_of(row.bytes(4));
  result.reason = row.text(5);
  if (!row.is_null(6)) result.stopped_seq = row.integer(6);
  result.stopped_event = row.text(7);
  result.trouble = row.text(8);
  result.trouble_since = row.text(9);
  auto spec = event::from_json(row.bytes(1), row.bytes(2));
  if (spec) {
    result.spec = std::move(*spec);
  } else {
    result.spec.name = row.text(1);
    result.state = SubscriptionState::stopped;
    result.reason = spec.error().text();
  }
  return result;
}

/// Equal meaning, also when the stored text was written by a version that knew fewer settings.
bool same_config(const std::string& name, const std::string& stored, const std::string& wanted) {
  if (stored == wanted) return true;
  const auto spec = event::from_json(name, stored);
  return spec && event::to_json(*spec) == wanted;
}

struct Found {
  std::int64_t id{0};
  std::string config;
};

Result<std::optional<Found>> find(Connection& connection, std::string_view name) {
  auto read = connection.statement(query::kSubscriptionByName);
  if (!read) return pass(read);
  auto row = read->bind(1, name).step();
  if (!row) return pass(row);
  if (!*row) return std::optional<Found>{};
  return std::optional<Found>(Found{.id = read->integer(0), .config = read->text(1)});
}

}  // namespace

Result<std::string> SqliteCatalog::identity() { return identity_of(connection_); }

Result<std::vector<SubscriptionRow>> SqliteCatalog::subscriptions() {
  auto list = connection_.statement(query::kSubscriptions);
  if (!list) return pass(list);
  std::vector<SubscriptionRow> rows;
  while (true) {
    auto row = list->step();
    if (!row) return pass(row);
    if (!*row) return rows;
    rows.push_back(row_of(*list));
  }
}

Result<bool> SqliteCatalog::apply(const SubscriptionSpec& spec) {
  if (Status status = event::validate(spec); !status) return pass(status);
  const std::string config = event::to_json(spec);
  // Without the write lock at first: a relay that starts beside busy writers has nothing to change as a rule.
  auto found = find(connection_, spec.name);
  if (!found) return pass(found);
  if (*found && same_config(spec.name, (*found)->config, config)) return false;
  auto transaction = WriteTransaction::begin(connection_);
  if (!transaction) return pass(transaction);
  found = find(connection_, spec.name);
  if (!found) return pass(found);
  if (*found && same_config(spec.name, (*found)->config, config)) return false;
  if (*found) {
    auto update = connection_.statement(query::kChangeSubscription);
    if (!update) return pass(update);
    if (Status status = update->bind(1, (*found)->id).bind(2, config).run(); !status)
      return pass(status);
  } else if (Status status = create(spec, config); !status) {
    return pass(status);
  }
  if (Status status = transaction->commit(); !status) return pass(status);
  return true;
}

// In the transaction of apply(): the write lock is ours, so no event is on its way that "now" would miss or repeat.
Status SqliteCatalog::create(const SubscriptionSpec& spec, std::string_view config) {
  std::int64_t position = 0;
  if (spec.start == "now") {
    auto newest = connection_.integer(query::kNewestSeq);
    if (!newest) return pass(newest);
    position = *newest;
  }
  auto insert = connection_.statement(query::kCreateSubscription);
  if (!insert) return pass(insert);
  auto row = insert->bind(1, spec.name).bind(2, config).step();
  if (!row) return pass(row);
  const std::int64_t id = insert->integer(0);
  auto first = connection_.statement(query::kFirstSettlement);
  if (!first) return pass(first);
  return first->bind(1, id).bind(2, position).bind(3, wall_us()).run();
}

Result<bool> SqliteCatalog::changes(Statement& update) {
  bool found = false;
  while (true) {
    auto row = update.step();
    if (!row) return pass(row);
    if (!*row) return found;
    found = true;
  }
}

Status SqliteCatalog::change(Statement& update, const std::string& which) {
  auto found = changes(update);
  if (!found) return pass(found);
  if (*found) return {};
  return fail(Errc::not_found, "subscription " + which + ": there is none of that name",
              "outbox subscription list");
}

Status SqliteCatalog::pause(std::string_view name, std::string_view reason) {
  auto update = connection_.statement(query::kPause);
  if (!update) return pass(update);
  update->bind(1, name).bind(2, reason);
  return change(*update, std::string(name));
}

Status SqliteCatalog::resume(std::string_view name) {
  auto update = connection_.statement(query::kResume);
  if (!update) return pass(update);
  update->bind(1, name);
  return change(*update, std::string(name));
}

Result<bool> SqliteCatalog::stop(std::int32_t id, std::int64_t generation, std::string_view reason,
                                 std::int64_t seq, const EventId& event) {
  auto update = connection_.statement(query::kStop);
  if (!update) return pass(update);
  const std::string event_id = event.str();
  update->bind(1, std::int64_t{id})
      .bind(2, generation)
      .bind(3, reason)
      .bind(4, seq)
      .bind(5, event_id);
  return changes(*update);
}

Status SqliteCatalog::report_trouble(std::int32_t id, std::int64_t generation,
                                     std::string_view trouble) {
  auto update = connection_.statement(query::kReportTrouble);
  if (!update) return pass(update);
  return update->bind(1, std::int64_t{id}).bind(2, generation).bind(3, trouble).run();
}

Result<SubscriptionProgress> SqliteCatalog::progress(const SubscriptionRow& subscription,
                                                     std::int64_t pending_limit) {
  SubscriptionProgress progress;
  progress.id = subscription.id;
  std::int64_t position = 0;
  if (Status status = add_cursor(progress, position); !status) return pass(status);
  if (Status status = add_pending(progress, position, pending_limit); !status) return pass(status);
  return progress;
}

Status SqliteCatalog::add_cursor(SubscriptionProgress& progress, std::int64_t& position) {
  auto cursor = connection_.statement(query::kNewestCursor);
  if (!cursor) return pass(cursor);
  auto row = cursor->bind(1, std::int64_t{progress.id}).step();
  if (!row) return pass(row);
  if (!*row)
    return fail(Errc::not_found,
                "sqlite: subscription " + std::to_string(progress.id) + " has no cursor");
  position = cursor->integer(0);
  progress.generation = cursor->integer(1);
  return {};
}

Status SqliteCatalog::add_pending(SubscriptionProgress& progress, std::int64_t position,
                                  std::int64_t limit) {
  auto count = connection_.statement(query::kCountAfter);
  if (!count) return pass(count);
  auto counted = count->bind(1, position).bind(2, limit + 1).step();
  if (!counted) return pass(counted);
  progress.pending = count->integer(0);
  progress.cap_pending(limit);
  auto first = connection_.statement(query::kFirstAfter);
  if (!first) return pass(first);
  auto oldest = first->bind(1, position).step();
  if (!oldest) return pass(oldest);
  if (*oldest) {
    progress.oldest_pending_at = time_text(first->integer(0));
    progress.lag = std::max(progress.lag, std::chrono::microseconds(wall_us() - first->integer(0)));
  }
  return {};
}

Status SqliteCatalog::add_totals(SubscriptionProgress& progress) {
  auto totals = connection_.statement(query::kSettledTotals);
  if (!totals) return pass(totals);
  auto row = totals->bind(1, std::int64_t{progress.id}).step();
  if (!row) return pass(row);
  if (!*row) return {};
  progress.acked = totals->integer(0);
  progress.filtered = totals->integer(1);
  if (!totals->is_null(2)) progress.last_settled_at = time_text(totals->integer(2));
  return {};
}

Result<std::vector<RelayRow>> SqliteCatalog::relays() {
  auto list = connection_.statement(query::kRelays);
  if (!list) return pass(list);
  std::vector<RelayRow> relays;
  while (true) {
    auto row = list->step();
    if (!row) return pass(row);
    if (!*row) return relays;
    const Member member = member_of(*list);
    relays.push_back(RelayRow{.id = member.id,
                              .name = member.name,
                              .owner = list->integer(9) == 1,
                              .alive = !is_dead(member, self_, monotonic_us()),
                              .generation = member.generation,
                              .heartbeat_at = list->text(10)});
  }
}

}  // namespace outbox::store::sqlite
