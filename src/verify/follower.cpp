#include "verify/follower.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "base/error.hpp"

namespace outbox::verify {
namespace {

constexpr std::size_t kRowsAtOnce = 1000;

}  // namespace

Follower::Follower(const std::vector<Compared>& from) {
  for (const Compared& lanes : from) {
    walk_.resume(lanes);
    // Rows of the generation that other lanes have compared already are passed over by the walk.
    const auto [known, added] = read_.emplace(lanes.row.generation, lanes.row.id);
    if (!added) known->second = std::min(known->second, lanes.row.id);
  }
}

Result<Follower::Progress> Follower::advance(store::LedgerReader& reader, std::int32_t subscription,
                                             std::int64_t until_us, const Pace& pace) {
  Progress progress;
  OUTBOX_TRY([[maybe_unused]] const auto moment, reader.begin_rows(subscription));
  walk_.compare_until(until_us);
  OUTBOX_TRY(const store::Pruned pruned, reader.pruned(subscription));
  walk_.set_pruned(pruned);
  const Reading reading{.reader = reader, .subscription = subscription, .pace = pace};
  OUTBOX_TRY(progress.finished, read_rows(reading));
  if (progress.finished) {
    OUTBOX_TRY(progress.finished, compare(reading));
  }
  LedgerReport found = walk_.take_report();
  progress.events = found.events;
  progress.settlements = found.settlements;
  progress.fault_count = found.fault_count;
  progress.faults = std::move(found.faults);
  return progress;
}

/// A generation may have its first row later than a newer one.
Result<bool> Follower::read_rows(const Reading& reading) {
  const auto known = read_;
  store::LedgerRank after{.generation = -1, .id = 0};
  for (const auto& [generation, id] : known) {
    const bool is_first = generation == known.begin()->first;
    OUTBOX_TRY(const bool goes_on,
               is_first ? Result<bool>(true) : read_until(reading, after, generation - 1));
    if (!goes_on) return false;
    after = {.generation = generation, .id = id};
  }
  OUTBOX_TRY(const bool goes_on, read_until(reading, after, store::kLastGeneration));
  if (!goes_on) return false;
  // No row of an older generation counts any more.
  std::int64_t oldest = store::kLastGeneration;
  for (const Compared& lanes : walk_.compared()) oldest = std::min(oldest, lanes.row.generation);
  std::erase_if(read_, [&](const auto& one) { return one.first < oldest; });
  return true;
}

/// The rows are compared page by page, so that memory does not grow with the ledger.
Result<bool> Follower::read_until(const Reading& reading, const store::LedgerRank& after,
                                  std::int64_t last) {
  store::LedgerRank from = after;
  while (true) {
    reading.reader.seek(from, last);
    OUTBOX_TRY(auto rows, reading.reader.next_rows(kRowsAtOnce));
    if (rows.empty()) return true;
    from = {.generation = rows.back().generation, .id = rows.back().id};
    for (store::LedgerRow& row : rows) {
      read_[row.generation] = row.id;
      walk_.add(std::move(row));
    }
    if (!reading.pace()) return false;
    OUTBOX_TRY(const bool goes_on, compare(reading));
    if (!goes_on) return false;
  }
}

/// What retention has removed is asked after the events were read: what is missing because of it is
/// known then.
Result<bool> Follower::compare(const Reading& reading) {
  if (!walk_.full()) return true;
  bool goes_on = true;
  for (const store::EventRange& range : walk_.window()) {
    OUTBOX_TRY(reading.reader.scan(range, [&](std::span<const store::LedgerEvent> events) {
      for (const store::LedgerEvent& event : events) (void)walk_.count(event);
      goes_on = goes_on && reading.pace();
    }));
  }
  if (!goes_on) return false;
  OUTBOX_TRY(const store::Pruned pruned, reading.reader.pruned(reading.subscription));
  walk_.set_pruned(pruned);
  walk_.close();
  return true;
}

}  // namespace outbox::verify
