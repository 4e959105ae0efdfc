// outbox/status.hpp: what the outbox is doing, for a service's own health page and for its support:
// how far each subscription is, and what has become of an event. For scripts there are `outbox
// status --json`, `outbox events` and outbox.event_status().
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
// Lifetime: values. Each call makes a connection of its own and closes it: it needs no care after a
//           failure, and a transaction of yours is not touched, nor seen before it is committed. On
//           PostgreSQL the login needs the role outbox_reader (or outbox_relay).
// Errors: as Result; they say what failed, where, and a hint. What the reader does changes nothing.
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

/// What a subscription was told to do. The words are frozen.
enum class Activity : std::uint8_t {
  active,
  paused,   ///< By a person.
  stopped,  ///< At an event that was rejected, until a person resumes it.
};
[[nodiscard]] const char* to_string(Activity activity) noexcept;

struct SubscriptionStatus {
  std::string name;
  std::string sink;
  std::string group;
  Activity activity{Activity::active};
  /// Why it is paused or stopped, or why it makes no progress while it is active; empty: none is
  /// known.
  std::string reason;
  /// Events committed and not passed, whether they match its filter or not: no more than was
  /// counted.
  std::int64_t pending{0};
  bool more_pending{false};  ///< There are more than `pending`.
  /// Of the oldest of them, by the clock of the store; none: nothing is pending.
  std::optional<std::chrono::microseconds> oldest_age{};
  /// Since its beginning.
  std::int64_t delivered{0};
  std::int64_t filtered{0};
  // Events that are set aside now.
  std::int64_t retrying{0};
  std::int64_t waiting{0};
  std::int64_t dead{0};
};

/// What has become of an event in a subscription. The words are frozen.
enum class EventState : std::uint8_t {
  pending,    ///< Not passed yet.
  published,  ///< The destination has it.
  filtered,   ///< Passed, and not matched by the filter.
  skipped,    ///< The subscription began after it.
  retrying,   ///< Set aside, and sent again at next_attempt_at.
  waiting,    ///< Set aside behind an earlier one of its key.
  running,    ///< A task whose worker runs it.
  dead,       ///< Is not sent unless a person says so.
  discarded,  ///< A person gave it up.
  edited,     ///< A person put a corrected copy in its place.
};
[[nodiscard]] const char* to_string(EventState state) noexcept;

struct EventInSubscription {
  std::string subscription;
  EventState state{EventState::pending};
  std::optional<Timestamp> published_by{};  ///< Of `published`: not later than this.
  std::optional<std::size_t> attempts{};    ///< Of an event that is or was set aside.
  std::optional<Timestamp> next_attempt_at{};
  std::string error{};  ///< Of its last attempt; empty: none.
  std::optional<EventId>
      waiting_for{};  ///< Of `waiting`: the first event of its key that is set aside.
  std::optional<EventId> replaced_by{};  ///< Of `edited`: the corrected copy.
};

struct EventStatus {
  EventId id{};
  std::int64_t seq{0};
  std::string aggregate_type;
  std::string aggregate_id;
  std::string event_type;
  Timestamp created_at{};
  /// False: a corrected copy, or an event that retention has removed since it was set aside.
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

  /// All of them, by name. `pending_limit`: pending events are counted up to it, at least 1.
  [[nodiscard]] Result<std::vector<SubscriptionStatus>> subscriptions(
      std::int64_t pending_limit = 10'000) const;
  /// How many events are pending, all counted, which takes a second for some millions. not_found:
  /// there is no such subscription.
  [[nodiscard]] Result<std::int64_t> pending(std::string_view subscription) const;
  /// The events with this id, the newest first: no constraint makes ids unique. Empty: none was
  /// found. Ids of ours are found by their time, others among the newest 100,000 events, or by the
  /// index of `outbox migrate --with-lookup-indexes`.
  [[nodiscard]] Result<std::vector<EventStatus>> events(const EventId& id) const;

 private:
  explicit StatusReader(std::unique_ptr<store::Store> store);
  std::unique_ptr<store::Store> store_;
};

}  // namespace outbox
