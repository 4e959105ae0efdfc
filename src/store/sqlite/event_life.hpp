// What became of an event in each subscription of a SQLite file (docs/design/status.md).
#pragma once

#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <vector>

#include "store/history.hpp"
#include "store/sqlite/connection.hpp"
#include "store/subscriptions.hpp"
#include "subscription/filter.hpp"

namespace outbox::store::sqlite {

/// It is used by one thread at a time. The connection outlives it.
class EventLives {
 public:
  [[nodiscard]] static Result<EventLives> of(Connection& connection);

  /// One entry for each subscription; for an event that is not in the log, only for subscriptions
  /// where it is or was parked.
  [[nodiscard]] Result<std::vector<EventLife>> read_life(const EventView& event, bool in_log) const;

 private:
  struct Subscription {
    SubscriptionRow row;
    subscription::Filter filter;
  };

  explicit EventLives(Connection& connection) : connection_(&connection) {}

  /// The next two return false if they say nothing about the event.
  [[nodiscard]] Result<bool> is_parked(const Subscription& subscription, const EventView& event,
                                       EventLife& life) const;
  [[nodiscard]] Result<bool> was_parked(const Subscription& subscription, const EventView& event,
                                        EventLife& life) const;
  [[nodiscard]] Status in_stream(const Subscription& subscription, const EventView& event,
                                 EventLife& life) const;
  [[nodiscard]] Result<bool> is_apart(const Subscription& subscription,
                                      const EventView& event) const;
  [[nodiscard]] Result<std::int64_t> settled_by(std::int64_t subscription, std::int64_t seq) const;

  Connection* connection_;
  std::vector<Subscription> subscriptions_;
};

}  // namespace outbox::store::sqlite
