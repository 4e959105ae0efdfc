// The parts of a store whose code both stores share. A part with something of its own in each store
// is a base class here.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/console_tokens.hpp"
#include "store/history.hpp"
#include "store/inbox.hpp"
#include "store/ownership.hpp"
#include "store/parked.hpp"
#include "store/replay.hpp"
#include "store/sql/connection.hpp"
#include "store/subscriptions.hpp"
#include "store/tasks.hpp"
#include "store/work_history.hpp"

namespace outbox::store::sql {

[[nodiscard]] std::unique_ptr<store::Schedules> make_schedules(
    std::unique_ptr<Connection> connection);
[[nodiscard]] std::unique_ptr<store::Trials> make_trials(std::unique_ptr<Connection> connection);
[[nodiscard]] std::unique_ptr<store::Verified> make_verified(
    std::unique_ptr<Connection> connection);
[[nodiscard]] std::unique_ptr<store::WorkHistory> make_work_history(
    std::unique_ptr<Connection> connection);
[[nodiscard]] std::unique_ptr<store::Inbox> make_inbox(std::unique_ptr<Connection> connection);
[[nodiscard]] std::unique_ptr<store::ConsoleTokens> make_console_tokens(
    std::unique_ptr<Connection> connection);

/// A subscription as find_subscription reads it.
struct FoundSubscription {
  std::int32_t id{0};
  std::string config;
  std::string group;
};
[[nodiscard]] Result<std::optional<FoundSubscription>> find_subscription(Connection& connection,
                                                                         std::string_view name);

[[nodiscard]] Result<std::vector<SubscriptionRow>> list_subscriptions(Connection& connection);
[[nodiscard]] Result<ParkedCounts> count_parked(Connection& connection, std::int32_t subscription);

/// Each store reads in its own way how far subscriptions are and which relays live.
class Catalog : public store::Catalog {
 public:
  [[nodiscard]] Result<std::vector<SubscriptionRow>> subscriptions() override {
    return list_subscriptions(*db_);
  }
  [[nodiscard]] Result<bool> apply(const SubscriptionSpec& spec) override {
    return apply(spec, Wanted::either);
  }
  [[nodiscard]] Status create(const SubscriptionSpec& spec) override {
    auto created = apply(spec, Wanted::a_new_one);
    return created ? Status{} : Status(pass(created));
  }
  [[nodiscard]] Status pause(std::string_view name, std::string_view reason) override;
  [[nodiscard]] Status resume(std::string_view name) override;
  [[nodiscard]] Result<bool> stop(std::int32_t id, std::int64_t generation, std::string_view reason,
                                  std::int64_t seq, const EventId& event) override;
  [[nodiscard]] Status report_trouble(std::int32_t id, std::int64_t generation,
                                      std::string_view trouble, const EventId& relay) override;

 protected:
  enum class Wanted : std::uint8_t { either, a_new_one };

  explicit Catalog(std::unique_ptr<Connection> connection) : db_(std::move(connection)) {}
  /// Is called before the transaction in which the subscription is created or changed. Returns true
  /// if nothing is to be done.
  [[nodiscard]] virtual Result<bool> is_applied(const SubscriptionSpec& spec,
                                                const std::string& config, Wanted wanted) = 0;
  [[nodiscard]] Connection& db() { return *db_; }

 private:
  enum class Applied : std::uint8_t { nothing, changed, again };

  [[nodiscard]] Result<bool> apply(const SubscriptionSpec& spec, Wanted wanted);
  [[nodiscard]] Result<Applied> apply_once(const SubscriptionSpec& spec, const std::string& config,
                                           Wanted wanted);
  [[nodiscard]] Status change(const FoundSubscription& found, const SubscriptionSpec& spec,
                              const std::string& config);
  [[nodiscard]] Result<Applied> insert(const SubscriptionSpec& spec, const std::string& config,
                                       Wanted wanted);
  [[nodiscard]] Status release(const std::string& name, Wanted wanted);
  [[nodiscard]] Status change_named(Named statement, const Params& params, std::string_view name);

  std::unique_ptr<Connection> db_;
};

/// Each store writes in its own way where a subscription begins anew.
class SubscriptionChanges : public store::SubscriptionChanges {
 public:
  [[nodiscard]] Result<std::vector<FormerName>> former_names() override;
  [[nodiscard]] Status rename(std::string_view name, std::string_view new_name) override;
  [[nodiscard]] Status drop(std::string_view name) override;

 protected:
  explicit SubscriptionChanges(std::unique_ptr<Connection> connection)
      : db_(std::move(connection)) {}
  [[nodiscard]] Connection& db() { return *db_; }
  [[nodiscard]] Result<FoundSubscription> find(std::string_view name);
  /// Must be called in a transaction. Takes locks, so that meanwhile no relay parks or settles
  /// events of the subscription, and retention removes nothing.
  [[nodiscard]] Result<FoundSubscription> lock_idle(std::string_view name);

 private:
  std::unique_ptr<Connection> db_;
};

/// The stores differ in how a replay begins and in what it reads.
class Replays : public store::Replays {
 public:
  [[nodiscard]] Result<RetainedLog> retained() override;
  [[nodiscard]] Result<std::int64_t> start(const Replay& replay) override {
    return begin(replay, std::nullopt);
  }
  [[nodiscard]] Status loaded(std::int64_t replay) override;
  [[nodiscard]] Result<bool> stop(std::int64_t replay, std::string_view reason) override;
  [[nodiscard]] Status resume(std::int64_t replay) override;
  [[nodiscard]] Result<std::vector<Replay>> list(std::int32_t subscription,
                                                 std::size_t limit) override {
    return read_list(nullptr, subscription, limit);
  }
  [[nodiscard]] Result<std::optional<Replay>> find(std::int64_t replay) override;
  [[nodiscard]] Result<std::vector<ReplaySkip>> skips(std::int64_t replay,
                                                      std::size_t limit) override;
  [[nodiscard]] Result<std::vector<ReplayPlace>> places(const Replay& replay,
                                                        LaneMask lanes) override;

 protected:
  explicit Replays(std::unique_ptr<Connection> connection) : db_(std::move(connection)) {}
  [[nodiscard]] Connection& db() { return *db_; }
  /// Starts a new replay, or resumes the one with this id, which was stopped. Returns 0 if that one
  /// is not stopped any more.
  [[nodiscard]] virtual Result<std::int64_t> begin(const Replay& replay,
                                                   std::optional<std::int64_t> id) = 0;
  /// Runs the start of a replay, which returns how many were started, and records it. loaded() does
  /// so for a new one whose events are copied from an archive.
  [[nodiscard]] Status start_recorded(const Replay& replay, std::optional<std::int64_t> id,
                                      const std::function<Result<std::int64_t>()>& start);

 private:
  [[nodiscard]] Result<std::vector<Replay>> read_list(Param id, std::int32_t subscription,
                                                      std::size_t limit);
  [[nodiscard]] Result<bool> change_one(Named statement, const Params& params);

  std::unique_ptr<Connection> db_;
};

/// The stores differ in how people change parked events.
class ParkedEvents : public store::ParkedEvents {
 public:
  [[nodiscard]] Result<std::vector<ParkedListing>> list(const ParkedFilter& filter,
                                                        std::size_t limit, bool whole) override;
  [[nodiscard]] Result<ParkedCounts> counts(std::int32_t subscription) override {
    return count_parked(*db_, subscription);
  }

 protected:
  explicit ParkedEvents(std::unique_ptr<Connection> connection) : db_(std::move(connection)) {}
  [[nodiscard]] Connection& db() { return *db_; }

 private:
  std::unique_ptr<Connection> db_;
};

/// The stores differ in how runs end, how unique tasks begin, and how workers share tasks.
class TaskRuns : public store::TaskRuns {
 public:
  [[nodiscard]] Result<std::int64_t> beat(const EventId& worker, std::string_view name,
                                          std::string_view note) override;
  [[nodiscard]] Status leave(const EventId& worker) override;
  [[nodiscard]] Result<std::vector<TaskRunRow>> runs_of(const EventId& worker,
                                                        std::span<const std::string> subscriptions,
                                                        std::size_t limit) override;
  [[nodiscard]] Result<std::vector<OtherWorker>> others(
      const EventId& me, std::span<const std::string> subscriptions) override;
  [[nodiscard]] Result<std::vector<ReplacedTask>> replaced(
      std::span<const std::string> subscriptions) override;

 protected:
  explicit TaskRuns(std::unique_ptr<Connection> connection) : db_(std::move(connection)) {}
  [[nodiscard]] Connection& db() { return *db_; }

 private:
  std::unique_ptr<Connection> db_;
};

/// Maps the answer to an edit, which is "edited" or the obstacle: "gone", "waiting", "due".
[[nodiscard]] Status edit_status(std::string_view word, const ParkedEdit& edit);

// ---- Rows about tasks that wait, and how to read them.

/// The aggregate_type of the tasks that a subscription of a queue delivers.
[[nodiscard]] std::string_view task_type(const SubscriptionRow& subscription);
/// Empty if the subscription delivers all types but those that have a subscription of their own.
[[nodiscard]] std::string_view own_type(const SubscriptionRow& subscription);
[[nodiscard]] PendingTask read_pending_task(Row row);
/// Adds the pending tasks. Each row has a type (null stands for events that are no task of these),
/// the number of tasks, and how long the first one has waited.
void add_pending(const Rows& rows, std::int32_t subscription, QueueReport& report,
                 std::int64_t& looked_at);
/// Adds the tasks that have a row of their own. Each row has a subscription, a type, a state, the
/// number of tasks, and how long the first of those that are due has waited.
void add_counts(const Rows& rows, QueueReport& report);
void add_workers(const Rows& rows, QueueReport& report);

/// `word` is the state of a task, or what became of its event in the subscription that delivers it
/// (store/history.hpp).
void set_state(TaskStatus& status, std::string_view word);

}  // namespace outbox::store::sql
