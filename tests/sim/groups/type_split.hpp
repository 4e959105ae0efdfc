// Decides which of two subscriptions a task belongs to: that of its queue, or, from the first
// cursor of a type set apart on, that of its type.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "sim/groups/promises.hpp"
#include "sim/groups/tables.hpp"

namespace outbox::sim {

class TypeSplit {
 public:
  TypeSplit(const Tables& tables, Promises& promises) : tables_(tables), promises_(promises) {}

  /// The type gets its first cursor in a lane. `queue` is where the queue's cursor stands.
  void begins(const SettlementRow& row, unsigned lane, const store::Cursor& queue) {
    if (!(row.row.end() == queue))
      promises_.broke("types: a type does not begin where its queue stands");
    if (first_[lane]) promises_.broke("types: a type begins twice in a lane");
    first_[lane] = row;
  }
  void forget() { first_ = {}; }
  [[nodiscard]] std::int32_t owner_of(const WrittenEvent& event) const {
    const auto& first = first_[event.lane];
    const bool apart = event.of_type && first && !tables_.is_before(event, *first);
    return apart ? kOfType : kSubscription;
  }

  /// A relay may settle as delivered what it has delivered for this subscription, even if the task
  /// belongs to the other subscription by then.
  void remembers(std::int32_t subscription, std::size_t number) {
    remembered_.emplace(subscription, number);
  }
  [[nodiscard]] bool is_remembered(std::int32_t subscription, std::size_t number) const {
    return remembered_.contains({subscription, number});
  }

 private:
  const Tables& tables_;
  Promises& promises_;
  std::array<std::optional<SettlementRow>, 64> first_;  ///< The first cursor of each lane.
  std::set<std::pair<std::int32_t, std::size_t>> remembered_;
};

}  // namespace outbox::sim
