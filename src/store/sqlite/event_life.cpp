#include "store/sqlite/event_life.hpp"

#include <limits>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "event/task_queue.hpp"
#include "store/sql/parts.hpp"
#include "store/sqlite/queries.hpp"
#include "store/stored_subscription.hpp"
#include "store/text.hpp"

namespace outbox::store::sqlite {
Result<EventLives> EventLives::of(Connection& connection) {
  EventLives lives(connection);
  OUTBOX_TRY(auto subscriptions, sql::list_subscriptions(connection));
  for (SubscriptionRow& row : subscriptions) {
    subscription::Filter filter(row.spec);
    lives.subscriptions_.push_back({.row = std::move(row), .filter = std::move(filter)});
  }
  return lives;
}

Result<std::vector<EventLife>> EventLives::read_life(const EventView& event, bool in_log) const {
  std::vector<EventLife> all;
  for (const Subscription& subscription : subscriptions_) {
    EventLife life{.subscription = subscription.row.spec.name};
    OUTBOX_TRY(bool known, is_parked(subscription, event, life));
    if (!known) {
      OUTBOX_TRY(known, was_parked(subscription, event, life));
    }
    if (!known && !in_log) continue;
    if (!known) {
      OUTBOX_TRY(in_stream(subscription, event, life));
    }
    all.push_back(std::move(life));
  }
  return all;
}

Result<bool> EventLives::is_parked(const Subscription& subscription, const EventView& event,
                                   EventLife& life) const {
  OUTBOX_TRY(const Statement row, connection_->query(query::kParkedLife, subscription.row.id,
                                                     event.seq, to_bytes(event.id)));
  if (!row.has_row()) return false;
  life.state = row.text(0);
  life.attempts = static_cast<std::int32_t>(row.integer(1));
  if (life.state == "retrying") life.next_attempt_at_us = row.integer(2);
  life.error = row.text(3);
  if (life.state != "waiting") return true;
  OUTBOX_TRY(const Statement first,
             connection_->query(query::kWaitingFor, subscription.row.id, event.seq));
  if (!first.has_row()) return true;
  life.waiting_for_seq = first.integer(0);
  life.waiting_for = to_id(first.bytes(1));
  return true;
}

Result<bool> EventLives::was_parked(const Subscription& subscription, const EventView& event,
                                    EventLife& life) const {
  OUTBOX_TRY(const Statement row, connection_->query(query::kParkedEndLife, subscription.row.id,
                                                     event.seq, to_bytes(event.id)));
  if (!row.has_row()) return false;
  const bool delivered = row.text(0) == "delivered";
  life.state = delivered ? "published" : row.text(0);
  if (delivered) life.published_by_us = row.integer(4);
  life.attempts = static_cast<std::int32_t>(row.integer(1));
  life.ended_by = row.text(2);
  life.reason = row.text(3);
  if (!row.is_null(5)) life.replaced_by = to_id(row.bytes(5));
  return true;
}

Status EventLives::in_stream(const Subscription& subscription, const EventView& event,
                             EventLife& life) const {
  life.state = "pending";
  OUTBOX_TRY(life.apart, is_apart(subscription, event));
  {
    OUTBOX_TRY(const Statement cursor,
               connection_->query(query::kNewestCursor, subscription.row.id));
    if (!cursor.has_row() || cursor.integer(0) < event.seq) return {};
  }
  OUTBOX_TRY(const std::int64_t id, settled_by(subscription.row.id, event.seq));
  if (id == 0) {
    life.state = "skipped";
    return {};
  }
  OUTBOX_TRY(const Statement row, connection_->query(query::kSettlement, id));
  const std::int64_t acked = row.integer(2);
  const std::int64_t filtered = row.integer(3);
  // Under other settings the counts may tell what became of the event; otherwise the present filter
  // does.
  const bool other_settings = row.integer(1) != subscription.row.config_version;
  bool matches = subscription.filter.matches(event);
  if (other_settings && filtered == 0 && acked > 0) matches = true;
  if (other_settings && filtered > 0 && acked == 0) matches = false;
  matches = matches && !life.apart;
  life.state = matches ? "published" : "filtered";
  if (matches) life.published_by_us = row.integer(4);
  return {};
}

/// Does the same as is_apart() of migrations/postgres/0005_status.sql.
Result<bool> EventLives::is_apart(const Subscription& subscription, const EventView& event) const {
  if (!event::is_task(event.aggregate_type) || event::is_of_type(subscription.row.spec) ||
      !event::is_of_queue(subscription.row.spec))
    return false;
  OUTBOX_TRY(const Statement row, connection_->query(query::kTypeApart, event.aggregate_type,
                                                     event.event_type, event.seq));
  return row.has_row();
}

/// The id of the first settlement that passed the event, which is behind the cursor; 0 if the
/// subscription began after the event. It does the same as settled_by() of
/// migrations/postgres/0005_status.sql, without lanes.
Result<std::int64_t> EventLives::settled_by(std::int64_t subscription, std::int64_t seq) const {
  std::int64_t low = 0;
  std::int64_t generation = -1;
  {
    OUTBOX_TRY(const Statement started,
               connection_->query(query::kLastBeginningBefore, subscription, seq));
    if (started.has_row()) {
      low = started.integer(0);
      generation = started.integer(1);
    }
  }
  std::int64_t high = std::numeric_limits<std::int64_t>::max();
  {
    OUTBOX_TRY(const Statement later,
               connection_->query(query::kNextBeginning, subscription, generation, low));
    if (later.has_row()) {
      if (low == 0) return later.text(1) == "reset" ? 0 : later.integer(0);
      high = later.integer(0);
    } else {
      OUTBOX_TRY(const Statement newest, connection_->query(query::kNewestCursorRow, subscription));
      high = newest.integer(0);
    }
  }
  while (low + 1 < high) {
    const std::int64_t middle = low + (high - low) / 2;
    OUTBOX_TRY(const Statement probe,
               connection_->query(query::kSettlementUpTo, subscription, low, middle, generation));
    if (probe.has_row() && probe.integer(1) >= seq) {
      high = probe.integer(0);
    } else {
      low = middle;
    }
  }
  return high;
}

}  // namespace outbox::store::sqlite
