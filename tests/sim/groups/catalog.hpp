// The table of subscriptions. It has one subscription, or that of a queue and beside it that of a
// type which a person or a worker has set apart. The product's own code decides what they leave to
// each other (store/stored_subscription.cpp).
#pragma once

#include <cstdint>
#include <vector>

#include "event/task.hpp"
#include "event/task_queue.hpp"
#include "store/stored_subscription.hpp"
#include "store/subscriptions.hpp"

namespace outbox::sim {

inline constexpr std::int32_t kSubscription = 1;
/// The subscription of a type set apart (docs/design/tasks.md).
inline constexpr std::int32_t kOfType = 2;
inline constexpr std::int32_t kSubscriptions = 2;

class Catalog {
 public:
  explicit Catalog(bool tasks) {
    store::SubscriptionRow& row = rows_.emplace_back();
    row.id = kSubscription;
    row.spec.name = tasks ? event::subscription_of_queue(kQueue) : "sim";
    row.spec.sink = "custom";
    if (tasks)
      row.spec.aggregate_types = {event::make_aggregate_type(kQueue, kPriority)};
    else
      row.spec.event_types = {kWanted};
  }

  [[nodiscard]] const std::vector<store::SubscriptionRow>& rows() const { return rows_; }
  [[nodiscard]] bool has_type() const { return rows_.size() > 1; }
  [[nodiscard]] bool is_active() const {
    return rows_.back().state == store::SubscriptionState::active;
  }
  /// Gives the type a subscription of its own.
  void set_apart(bool paused) {
    if (has_type()) return;
    store::SubscriptionRow row;
    row.id = kOfType;
    row.spec = event::spec_of_type(rows_.front().spec, kType);
    rows_.push_back(std::move(row));
    set_active(!paused);
  }
  void set_active(bool active) {
    rows_.back().state =
        active ? store::SubscriptionState::active : store::SubscriptionState::paused;
    rows_.front().left_out.clear();
    rows_.front().paused_types.clear();
    store::note_types_of_their_own(rows_);
  }
  void parked_changed(std::int32_t subscription) {
    ++rows_[static_cast<std::size_t>(subscription - 1)].parked_version;
  }

  static constexpr const char* kQueue = "sim";
  static constexpr std::size_t kPriority = 2;
  static constexpr const char* kWanted = "Happened";
  static constexpr const char* kType = "Limited";

 private:
  std::vector<store::SubscriptionRow> rows_;
};

}  // namespace outbox::sim
