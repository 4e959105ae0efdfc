// Renaming and dropping a subscription (docs/design/subscriptions.md).
#include "base/error.hpp"
#include "store/sql/audit.hpp"
#include "store/sql/parts.hpp"
#include "store/stored_subscription.hpp"
#include "store/subscriptions.hpp"
#include "subscription/group.hpp"
#include "subscription/spec.hpp"

namespace outbox::store {
namespace {

constexpr const char* kRenamedOrigin = "outbox:renamed";

}  // namespace

Error renamed(std::string_view name, std::string_view now) {
  Error error = fail(Errc::already_exists,
                     "subscription " + std::string(name) + " was renamed to " + std::string(now) +
                         ": nothing is created",
                     "name it [subscription." + std::string(now) +
                         "] in the configuration; or, for a second one that delivers everything "
                         "again: outbox subscription create " +
                         std::string(name))
                    .value();
  error.origin = kRenamedOrigin;
  return error;
}

bool is_renamed(const Error& error) noexcept { return error.origin == kRenamedOrigin; }

tl::unexpected<Error> replay_runs(std::string_view name) {
  return fail(Errc::unavailable,
              "subscription " + std::string(name) + ": a replay of it is loading or running",
              "wait for its end, or stop it: outbox replay --list, outbox replay --stop");
}

tl::unexpected<Error> name_taken(std::string_view name) {
  return fail(Errc::already_exists, "there is a subscription " + std::string(name) + " already",
              "outbox subscription list");
}

Result<SubscriptionSpec> renamed_spec(std::string_view name, std::string_view config,
                                      std::string_view new_name) {
  OUTBOX_TRY(SubscriptionSpec spec, subscription::from_json(name, config));
  spec.name = new_name;
  Status status = subscription::validate(spec);
  if (status) return spec;
  if (status.error().hint.empty()) status.error().hint = "a name such as orders-v2";
  return pass(status);
}

namespace sql {

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
    OUTBOX_TRY(db_->run(&Statements::flushed));
    OUTBOX_TRY(const FoundSubscription found, find(name));
    OUTBOX_TRY(const SubscriptionSpec spec, renamed_spec(name, found.config, new_name));
    OUTBOX_TRY(const Rows taken, db_->exec(&Statements::name_is_taken, {new_name}));
    if (taken.first<bool>()) return name_taken(new_name);
    OUTBOX_TRY(db_->run(&Statements::rename, {found.id, new_name}));
    const std::string group = subscription::choose_group(spec, found.group);
    if (group != found.group) {
      OUTBOX_TRY(db_->run(&Statements::change_group, {found.id, group}));
    }
    OUTBOX_TRY(record(*db_, {.name = name}, 1));
    return Decision::commit;
  });
}

Status SubscriptionChanges::drop(std::string_view name) {
  return db_->transact([&]() -> Result<Decision> {
    OUTBOX_TRY(const FoundSubscription found, lock_idle(name));
    OUTBOX_TRY(db_->run(&Statements::drop, {found.id}));
    OUTBOX_TRY(record(*db_, {.name = name}, 1));
    return Decision::commit;
  });
}

Result<FoundSubscription> SubscriptionChanges::find(std::string_view name) {
  OUTBOX_TRY(auto found, find_subscription(*db_, name));
  if (!found) return fail(no_such_subscription(name).error());
  return std::move(*found);
}

/// Takes the locks in the order of Catalog::apply().
Result<FoundSubscription> SubscriptionChanges::lock_idle(std::string_view name) {
  OUTBOX_TRY(db_->run(&Statements::flushed));
  OUTBOX_TRY(FoundSubscription found, find(name));
  OUTBOX_TRY(db_->run(&Statements::lock_fleet));
  OUTBOX_TRY(db_->run(&Statements::lock_lanes, {found.group}));
  OUTBOX_TRY(const Rows replay, db_->exec(&Statements::running_replay, {found.id}));
  if (replay.first<bool>()) return replay_runs(name);
  return found;
}

}  // namespace sql
}  // namespace outbox::store
