// outbox/status.hpp: how far each subscription is, and what has become of an event: for the health
// page of a service and for those who support it. Scripts use `outbox status --json`, `outbox
// events` and the SQL function outbox.event_status().
//
//   auto status = outbox::StatusReader::open({.store_url = "postgresql://localhost/shop"});
//   if (!status) throw outbox::Exception(status.error());
//   for (const auto& one : status->subscriptions().value())
//     if (one.dead > 0 || one.oldest_age > std::chrono::minutes(5)) complain(one.name);
//   for (const auto& event : status->events(id).value())
//     for (const auto& one : event.subscriptions)
//       show(one.subscription, outbox::to_string(one.state));
//
// Threads: Const methods from any thread.
// Lifetime: values. Each call opens a connection and closes it again, so a StatusReader can be used
//           again after a failure, and does not see what a transaction of yours has not committed.
//           On PostgreSQL the login needs the role outbox_reader (or outbox_relay).
// Errors: a Result says what failed and where, and has a hint. The reader changes nothing.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace outbox {

namespace store {
class Store;
}

struct StatusOptions {
  /// postgresql://..., or sqlite:PATH. Required.
  std::string store_url;
  /// PostgreSQL schema of the outbox tables. Default: outbox.
  std::string schema{"outbox"};
};

/// What a subscription was told to do. These words do not change.
enum class Activity : std::uint8_t {
  active,
  paused,   ///< A person paused it.
  stopped,  ///< It stopped at an event that was rejected, until a person resumes it.
};
[[nodiscard]] const char* to_string(Activity activity) noexcept;

struct SubscriptionStatus {
  std::string name;
  std::string sink;
  std::string group;
  Activity activity{Activity::active};
  /// Why it is paused or stopped, or why it makes no progress although it is active. Empty if no
  /// reason is known.
  std::string reason;
  /// The number of committed events that it has not passed yet, whether they match its filter or
  /// not. They are counted up to a limit.
  std::int64_t pending{0};
  bool more_pending{false};  ///< Whether there are more than `pending`.
  /// The age of the oldest pending event by the clock of the store; not set if none is pending.
  std::optional<std::chrono::microseconds> oldest_age{};
  /// How many events it has delivered since it was created.
  std::int64_t delivered{0};
  /// How many events its filter has left out since it was created.
  std::int64_t filtered{0};
  // Events that are set aside now.
  std::int64_t retrying{0};
  std::int64_t waiting{0};
  std::int64_t dead{0};
};

/// What has become of an event in a subscription. These words do not change.
enum class EventState : std::uint8_t {
  pending,    ///< The subscription has not passed it yet.
  published,  ///< The destination has it.
  filtered,   ///< The filter of the subscription does not match it.
  skipped,    ///< The subscription began after it.
  retrying,   ///< It is set aside and sent again at next_attempt_at.
  waiting,    ///< It is set aside behind an earlier event of its key.
  running,    ///< It is a task, and a worker runs it.
  dead,       ///< It is not sent again unless a person decides so.
  discarded,  ///< A person gave it up.
  edited,     ///< A person put a corrected copy in its place.
};
[[nodiscard]] const char* to_string(EventState state) noexcept;

struct EventInSubscription {
  std::string subscription;
  EventState state{EventState::pending};
  /// If it is `published`: it was, at this time or earlier.
  std::optional<Timestamp> published_by{};
  std::optional<std::size_t> attempts{};  ///< Set if the event is, or was, set aside.
  std::optional<Timestamp> next_attempt_at{};
  std::string error{};  ///< The error of its last attempt; empty if that did not fail.
  /// If it is `waiting`: the first event of its key that is set aside.
  std::optional<EventId> waiting_for{};
  std::optional<EventId> replaced_by{};  ///< If it is `edited`: the corrected copy.
};

struct EventStatus {
  EventId id{};
  std::int64_t seq{0};
  std::string aggregate_type;
  std::string aggregate_id;
  /// Empty for a corrected copy that was delivered or discarded: only its outcome is kept.
  std::string event_type;
  Timestamp created_at{};
  /// False for a corrected copy, and for an event that retention has removed after it was set
  /// aside.
  bool in_log{true};
  std::vector<EventInSubscription> subscriptions;
};

class StatusReader {
 public:
  /// Validates the options. Connects to nothing.
  [[nodiscard]] static Result<StatusReader> open(const StatusOptions& options);
  StatusReader(StatusReader&&) noexcept;
  StatusReader& operator=(StatusReader&&) noexcept;
  ~StatusReader();

  /// All subscriptions in the order of their names. Pending events are counted up to
  /// `pending_limit`, which is at least 1.
  [[nodiscard]] Result<std::vector<SubscriptionStatus>> subscriptions(
      std::int64_t pending_limit = 10'000) const;
  /// Counts all pending events, which takes a second for some millions of them. Fails with
  /// not_found if there is no such subscription.
  [[nodiscard]] Result<std::int64_t> pending(std::string_view subscription) const;
  /// The events with this id, the newest first; there may be several, since no constraint makes ids
  /// unique. An id that EventId::generate() made is found by the time in it. Other ids are looked
  /// for among the newest 100,000 events, or in the index of `outbox migrate
  /// --with-lookup-indexes`.
  [[nodiscard]] Result<std::vector<EventStatus>> events(const EventId& id) const;

 private:
  explicit StatusReader(std::unique_ptr<store::Store> store);
  std::unique_ptr<store::Store> store_;
};

}  // namespace outbox
