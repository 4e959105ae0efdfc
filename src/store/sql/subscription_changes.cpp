// Renaming and dropping a subscription (docs/design/subscriptions.md).
#include "event/group.hpp"
#include "store/common/subscription.hpp"
#include "store/sql/parts.hpp"

namespace outbox::store::sql {

Result<std::vector<FormerName>> SubscriptionChanges::former_names() {
  OUTBOX_TRY(const Rows rows, db_->exec(&Statements::former_names));
  return rows.list([](Row row) {
    FormerName former;
    row.read(former.name, former.subscription);
    return former;
  });
}

Status SubscriptionChanges::rename(std::string_view name, std::string_view new_name) {
  return db_->transact([&]() -> Result<Decision> {
    if (Status status = db_->run(&Statements::flushed); !status) return pass(status);
    OUTBOX_TRY(const FoundSubscription found, find(name));
    OUTBOX_TRY(const SubscriptionSpec spec, renamed_spec(name, found.config, new_name));
    OUTBOX_TRY(const Rows taken, db_->exec(&Statements::name_is_taken, {new_name}));
    if (taken.first<bool>()) return name_taken(new_name);
    Status status = db_->run(&Statements::rename, {found.id, new_name});
    const std::string group = event::group_of(spec, found.group);
    if (status && group != found.group)
      status = db_->run(&Statements::change_group, {found.id, group});
    if (!status) return pass(status);
    return Decision::commit;
  });
}

Status SubscriptionChanges::drop(std::string_view name) {
  return db_->transact([&]() -> Result<Decision> {
    OUTBOX_TRY(const FoundSubscription found, lock_idle(name));
    if (Status status = db_->run(&Statements::drop, {found.id}); !status) return pass(status);
    return Decision::commit;
  });
}

Result<FoundSubscription> SubscriptionChanges::find(std::string_view name) {
  OUTBOX_TRY(auto found, find_subscription(*db_, name));
  if (!found) return fail(no_such_subscription(name).error());
  return std::move(*found);
}

/// The locks in the order of Catalog::apply().
Result<FoundSubscription> SubscriptionChanges::lock_idle(std::string_view name) {
  if (Status status = db_->run(&Statements::flushed); !status) return pass(status);
  OUTBOX_TRY(FoundSubscription found, find(name));
  Status status = db_->run(&Statements::lock_fleet);
  if (status) status = db_->run(&Statements::lock_lanes, {found.group});
  if (!status) return pass(status);
  OUTBOX_TRY(const Rows replay, db_->exec(&Statements::running_replay, {found.id}));
  if (replay.first<bool>()) return replay_runs(name);
  return found;
}

}  // namespace outbox::store::sql
