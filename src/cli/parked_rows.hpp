// What `outbox parked` and `outbox tasks` share: the store, whose parked events these are, and
// changing many of them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/context.hpp"
#include "cli/exit.hpp"

namespace outbox::cli {

struct ParkedRows {
  explicit ParkedRows(const config::Loaded& loaded, Decided decided = {})
      : store(Context::checked_store(loaded, std::move(decided))),
        catalog(must(store->catalog())),
        rows(must(catalog->subscriptions())),
        parked(must(store->parked_events())) {}

  std::unique_ptr<store::Store> store;
  std::unique_ptr<store::Catalog> catalog;
  std::vector<store::SubscriptionRow> rows;
  std::unique_ptr<store::ParkedEvents> parked;

  [[nodiscard]] std::string subscription_name(std::int32_t subscription) const {
    for (const auto& row : rows) {
      if (row.id == subscription) return row.spec.name;
    }
    return "(removed, id " + std::to_string(subscription) + ")";
  }
};

/// A place in a list of parked rows, behind which the next page begins: "3.4711".
using PageEnd = std::pair<std::int32_t, std::int64_t>;
[[nodiscard]] inline std::string page_end_text(const store::ParkedListing& last) {
  return std::to_string(last.subscription) + "." + std::to_string(last.seq);
}
[[nodiscard]] std::optional<PageEnd> parse_page_end(const std::optional<std::string>& text);

/// Calls `take(events)` for all events that fit, in pages so small that each change of one is a
/// short transaction.
template <class Take>
void each_page(const ParkedRows& open, store::ParkedFilter filter, Take take) {
  for (bool more = true; more;) {
    const auto page = must(open.parked->list(filter, store::kMostChanged, false));
    more = page.size() == store::kMostChanged;
    if (page.empty()) return;
    filter.after = {page.back().subscription, page.back().seq};
    take(page);
  }
}

/// Says on stderr how far a command has come that changes many events.
class ChangeProgress {
 public:
  void changed(std::size_t events) {
    all_ += events;
    const auto now = std::chrono::steady_clock::now();
    if (now < again_at_) return;
    again_at_ = now + std::chrono::seconds(1);
    if (std::exchange(said_, true)) std::fprintf(stderr, "%zu so far\n", all_);
  }
  [[nodiscard]] std::size_t all() const { return all_; }

 private:
  std::size_t all_{0};
  bool said_{false};  ///< Nothing is said about the first change: most commands are done at once.
  std::chrono::steady_clock::time_point again_at_{};
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

/// The number of dead events with a key: later events of the key may have been delivered before
/// them.
[[nodiscard]] inline std::size_t count_overtaken(const std::vector<store::ParkedListing>& events) {
  std::size_t dead = 0;
  for (const auto& event : events) {
    if (event.state == store::ParkedState::dead && !event.aggregate_id.empty()) ++dead;
  }
  return dead;
}

}  // namespace outbox::cli
