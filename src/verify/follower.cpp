#include "verify/follower.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <span>
#include <utility>

#include "base/error.hpp"

namespace outbox::verify {
namespace {

constexpr std::size_t kRowsAtOnce = 1000;
constexpr std::int64_t kNoHorizon = std::numeric_limits<std::int64_t>::max();

}  // namespace

Follower::Follower(const std::vector<Compared>& from, std::size_t rows_of_generation)
    : rows_of_generation_(rows_of_generation) {
  walk_.expect_late_rows();
  // Ids grow with time, and what is newer than the oldest of these rows may concern any lanes: the
  // walk passes over what it has compared.
  for (const Compared& lanes : from) first_id_ = std::min(first_id_, lanes.row.id);
  if (from.empty()) first_id_ = 0;
  for (const Compared& lanes : from) {
    walk_.resume(lanes);
    read_[lanes.row.generation] = first_id_;
  }
}

Result<Follower::Progress> Follower::advance(store::LedgerReader& reader, std::int32_t subscription,
                                             const Times& times, const Pace& pace) {
  Progress progress;
  OUTBOX_TRY(reader.begin_rows(subscription));
  OUTBOX_TRY(const store::Pruned pruned, reader.pruned(subscription));
  walk_.set_pruned(pruned);
  const Reading reading{.reader = reader, .subscription = subscription, .pace = pace};
  std::int64_t horizon = kNoHorizon;
  OUTBOX_TRY(progress.finished, read_rows(reading, horizon));
  if (progress.finished) {
    walk_.compare_until(std::min(times.now_us, horizon) - times.age_us);
    OUTBOX_TRY(progress.finished, compare(reading));
  }
  progress.more = horizon != kNoHorizon;
  LedgerReport found = walk_.take_report();
  progress.events = found.events;
  progress.settlements = found.settlements;
  progress.fault_count = found.fault_count;
  progress.faults = std::move(found.faults);
  return progress;
}

/// In the order of the generations, since a claim comes behind the settlements before it. A
/// generation may have its first row later than a newer one.
Result<bool> Follower::read_rows(const Reading& reading, std::int64_t& horizon) {
  const auto known = read_;
  store::LedgerRank after{.generation = -1, .id = 0};
  for (auto one = known.begin(); one != known.end(); ++one) {
    after = {.generation = one->first, .id = one->second};
    const auto next = std::next(one);
    const std::int64_t last = next == known.end() ? store::kLastGeneration : next->first - 1;
    OUTBOX_TRY(const bool goes_on, read_generations(reading, after, last, horizon));
    if (!goes_on) return false;
  }
  if (known.empty()) {
    OUTBOX_TRY(const bool goes_on,
               read_generations(reading, after, store::kLastGeneration, horizon));
    if (!goes_on) return false;
  }
  // No row of an older generation counts any more.
  std::int64_t oldest = store::kLastGeneration;
  for (const Compared& lanes : walk_.compared()) oldest = std::min(oldest, lanes.row.generation);
  std::erase_if(read_, [&](const auto& one) { return one.first < oldest; });
  return true;
}

/// Memory does not grow with the ledger: of each generation a limited number of rows is read, and
/// of the later ones no row that was written after the first one that is left.
Result<bool> Follower::read_generations(const Reading& reading, store::LedgerRank after,
                                        std::int64_t last, std::int64_t& horizon) {
  std::int64_t generation = after.generation;
  std::size_t count = 0;
  while (true) {
    reading.reader.seek(after, last);
    OUTBOX_TRY(auto rows, reading.reader.next_rows(kRowsAtOnce));
    if (rows.empty()) return true;
    for (store::LedgerRow& row : rows) {
      if (row.generation != std::exchange(generation, row.generation)) count = 0;
      after = {.generation = row.generation, .id = row.id};
      if (count == rows_of_generation_) horizon = std::min(horizon, row.at_us);
      if (row.at_us >= horizon) {
        after.id = store::kLastGeneration;
        break;
      }
      ++count;
      read_[row.generation] = row.id;
      if (row.id > first_id_) walk_.add(std::move(row));
    }
    if (!reading.pace()) return false;
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
