// Subscriptions: what both stores do in the same way.
#include <string>
#include <utility>

#include "base/error.hpp"
#include "event/task_queue.hpp"
#include "store/sql/audit.hpp"
#include "store/sql/parts.hpp"
#include "store/stored_subscription.hpp"
#include "store/subscriptions.hpp"
#include "subscription/group.hpp"
#include "subscription/spec.hpp"

namespace outbox::store::sql {
namespace {

SubscriptionRow read_subscription(Row row) {
  SubscriptionRow found;
  std::string name;
  std::string config;
  std::string state;
  std::optional<EventId> stopped_event;
  row.read(found.id, name, config, found.config_version, state, found.reason, found.stopped_seq,
           stopped_event, found.trouble, found.trouble_since, found.parked_version, found.group,
           found.group_generation, found.trouble_relay, found.replay);
  found.state = parse_state(state);
  if (stopped_event) found.stopped_event = stopped_event->str();
  read_config(found, name, config);
  return found;
}

}  // namespace

Result<std::optional<FoundSubscription>> find_subscription(Connection& connection,
                                                           std::string_view name) {
  OUTBOX_TRY(const Rows rows, connection.exec(&Statements::find_subscription, {name}));
  if (rows.empty()) return std::optional<FoundSubscription>{};
  FoundSubscription found;
  rows[0].read(found.id, found.config, found.group);
  return std::optional(std::move(found));
}

Result<std::vector<SubscriptionRow>> list_subscriptions(Connection& connection) {
  OUTBOX_TRY(const Rows rows, connection.exec(&Statements::subscriptions));
  auto all = rows.list(read_subscription);
  note_types_of_their_own(all);
  return all;
}

Result<bool> Catalog::apply(const SubscriptionSpec& spec, Wanted wanted) {
  OUTBOX_TRY(subscription::validate(spec));
  const std::string config = subscription::to_json(spec);
  OUTBOX_TRY(const bool done, is_applied(spec, config, wanted));
  if (done) return false;
  // Tries again when another process created the subscription between our select and our insert.
  for (int attempt = 1;; ++attempt) {
    OUTBOX_TRY(const Applied applied, apply_once(spec, config, wanted));
    if (applied != Applied::again || attempt == 3) return applied == Applied::changed;
  }
}

Result<Catalog::Applied> Catalog::apply_once(const SubscriptionSpec& spec,
                                             const std::string& config, Wanted wanted) {
  Applied applied = Applied::changed;
  OUTBOX_TRY(db_->transact([&]() -> Result<Decision> {
    // A crash of the database must not take back a first cursor that was already used.
    OUTBOX_TRY(db_->run(&Statements::flushed));
    OUTBOX_TRY(const auto found, find_subscription(*db_, spec.name));
    if (found && wanted == Wanted::a_new_one) return name_taken(spec.name);
    if (!found) {
      OUTBOX_TRY(applied, insert(spec, config, wanted));
    } else if (same_config(spec.name, found->config, config)) {
      applied = Applied::nothing;
    } else if (Status changed = change(*found, spec, config); !changed) {
      return pass(changed);
    } else {
      applied = Applied::changed;
    }
    if (applied != Applied::changed) return Decision::rollback;
    OUTBOX_TRY(record(*db_, {.name = spec.name}, 1));
    return Decision::commit;
  }));
  return applied;
}

Status Catalog::change(const FoundSubscription& found, const SubscriptionSpec& spec,
                       const std::string& config) {
  Status status = check_same_type(spec, found.config);
  if (status) status = db_->run(&Statements::change_subscription, {found.id, config});
  const std::string group = subscription::choose_group(spec, found.group);
  if (!status || found.group == group) return status;
  return db_->run(&Statements::change_group, {found.id, group});
}

Result<Catalog::Applied> Catalog::insert(const SubscriptionSpec& spec, const std::string& config,
                                         Wanted wanted) {
  OUTBOX_TRY(db_->run(&Statements::lock_fleet));
  OUTBOX_TRY(release(spec.name, wanted));
  const std::string group = subscription::choose_group(spec);
  OUTBOX_TRY(const Rows created,
             db_->exec(&Statements::create_subscription, {spec.name, config, group}));
  if (created.empty()) return Applied::again;
  // A subscription of a type begins where that of its queue stands, when its lanes start next.
  if (!event::is_of_type(spec)) {
    OUTBOX_TRY(db_->run(&Statements::first_settlement,
                        {created.first<std::int32_t>(), spec.start == Start::now}));
  }
  return Applied::changed;
}

/// Refuses a former name, or forgets it if a new subscription is wanted.
Status Catalog::release(const std::string& name, Wanted wanted) {
  if (wanted == Wanted::a_new_one) return db_->run(&Statements::forget_former_name, {name});
  OUTBOX_TRY(const Rows former, db_->exec(&Statements::former_name, {name}));
  return former.empty() ? Status{} : fail(renamed(name, former.first<std::string>()));
}

Status Catalog::pause(std::string_view name, std::string_view reason) {
  return change_named(&Statements::pause, {name, reason}, name);
}

Status Catalog::resume(std::string_view name) {
  return change_named(&Statements::resume, {name}, name);
}

Status Catalog::change_named(Named statement, const Params& params, std::string_view name) {
  return change_recorded(*db_, {.name = name}, [&]() -> Result<std::int64_t> {
    OUTBOX_TRY(const Rows changed, db_->exec(statement, params));
    if (changed.empty()) return fail(no_such_subscription(name).error());
    return 1;
  });
}

Result<bool> Catalog::stop(std::int32_t id, std::int64_t generation, std::string_view reason,
                           std::int64_t seq, const EventId& event) {
  const std::string text = event.str();
  OUTBOX_TRY(const Rows stopped, db_->exec(&Statements::stop, {id, generation, reason, seq, text}));
  return !stopped.empty();
}

Status Catalog::report_trouble(std::int32_t id, std::int64_t generation, std::string_view trouble,
                               const EventId& relay) {
  const std::string text = relay.str();
  return db_->run(&Statements::report_trouble, {id, generation, trouble, text});
}

}  // namespace outbox::store::sql
