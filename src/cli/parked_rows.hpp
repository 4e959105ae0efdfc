// What `outbox parked` and `outbox tasks` share: the store, whose parked events these are, and changing many of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/context.hpp"
#include "cli/exit.hpp"

namespace outbox::cli {

/// Most events that one command changes.
inline constexpr std::size_t kMostChanged = 100'000;

struct ParkedRows {
  explicit ParkedRows(const config::Loaded& loaded)
      : store(Context::checked_store(loaded)),
        catalog(must(store->catalog())),
        rows(must(catalog->subscriptions())),
        parked(must(store->parked_events())) {}

  std::unique_ptr<store::Store> store;
  std::unique_ptr<store::Catalog> catalog;
  std::vector<store::SubscriptionRow> rows;
  std::unique_ptr<store::ParkedEvents> parked;

  [[nodiscard]] std::string name_of(std::int32_t subscription) const {
    for (const auto& row : rows) {
      if (row.id == subscription) return row.spec.name;
    }
    return "(removed, id " + std::to_string(subscription) + ")";
  }
};

/// Calls `change(subscription, seqs)` for each subscription. Returns how many events there were.
template <class Change>
std::size_t change_each(const std::vector<store::ParkedListing>& events, Change change) {
  std::size_t changed = 0;
  for (std::size_t first = 0; first < events.size();) {
    std::vector<std::int64_t> seqs;
    const std::int32_t subscription = events[first].subscription;
    for (; first < events.size() && events[first].subscription == subscription; ++first)
      seqs.push_back(events[first].seq);
    changed += must(change(subscription, seqs));
  }
  return changed;
}

/// Dead ones with a key: others of it may have gone before them.
[[nodiscard]] inline std::size_t count_overtaken(const std::vector<store::ParkedListing>& events) {
  std::size_t dead = 0;
  for (const auto& event : events) {
    if (event.state == store::ParkedState::dead && !event.aggregate_id.empty()) ++dead;
  }
  return dead;
}

}  // namespace outbox::cli
