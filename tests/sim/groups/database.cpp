#include "sim/groups/database.hpp"

#include <algorithm>

#include "sim/groups/catalog.hpp"

namespace outbox::sim {
namespace {

/// nextval() logs so many values in advance. After a crash the sequence goes on behind them.
constexpr std::int64_t kLoggedAhead = 32;
constexpr std::size_t kMostWriters = 12;
constexpr unsigned kOfTypePercent = 35;

}  // namespace

std::size_t number_of(const EventId& id) {
  std::uint64_t number = 0;
  for (unsigned byte = 0; byte < 8; ++byte) number |= std::uint64_t{id.bytes[byte]} << (8 * byte);
  return static_cast<std::size_t>(number - 1);
}

Database::Database(Random& random, unsigned keys, unsigned filtered_percent, bool tasks)
    : random_(random),
      filtered_percent_(filtered_percent),
      tasks_(tasks),
      queue_(tasks ? event::make_aggregate_type(Catalog::kQueue) : "sim"),
      locks_(keys, false),
      of_key_(keys) {
  for (unsigned key = 0; key < keys; ++key) names_.push_back("k" + std::to_string(key));
}

void Database::write() {
  if (writers_.size() < kMostWriters && random_.chance(30)) {
    writers_.push_back({.key = static_cast<unsigned>(random_.below(locks_.size())),
                        .left = 1 + random_.below(3),
                        .events = {}});
    if (random_.chance(40)) writers_.back().xid = begin();
  }
  if (!writers_.empty()) advance(writers_[random_.below(writers_.size())]);
}

void Database::advance(Writer& writer) {
  if (!writer.locked) {
    if (locks_[writer.key]) return;
    writer.locked = locks_[writer.key] = true;
  } else if (writer.left > 0) {
    insert(writer);
  } else {
    end(writer);
  }
}

/// The transaction gets its id before the seq is taken.
void Database::insert(Writer& writer) {
  if (writer.xid == 0) writer.xid = begin();
  --writer.left;
  const std::size_t number = events_.size();
  WrittenEvent event;
  event.xid = writer.xid;
  event.key = writer.key;
  event.view.seq = ++sequence_;
  if (sequence_ > sequence_logged_) sequence_logged_ = sequence_ + kLoggedAhead;
  event.wanted = splitmix64(number) % 100 >= filtered_percent_;
  event.of_type = tasks_ && splitmix64(number * 67) % 100 < kOfTypePercent;
  event.view.aggregate_type = queue_;
  if (tasks_ && !event.wanted) event.view.aggregate_type = "sim";
  event.view.aggregate_id = names_[writer.key];
  event.view.event_type = event.of_type ? Catalog::kType : Catalog::kWanted;
  if (!tasks_ && !event.wanted) event.view.event_type = "Unwanted";
  event.view.headers = "{}";
  for (unsigned byte = 0; byte < 8; ++byte)
    event.view.id.bytes[byte] = static_cast<std::uint8_t>((number + 1) >> (8 * byte));
  event.lane = static_cast<unsigned>(splitmix64(writer.key) % 64);
  events_.push_back(event);
  rows_.push_back(number);
  writer.events.push_back(number);
  newest_logged_xid_ = std::max(newest_logged_xid_, writer.xid);
  log();
}

void Database::end(Writer& writer) {
  const Writer ended = writer;
  writers_.erase(writers_.begin() + (&writer - writers_.data()));
  locks_[ended.key] = false;
  if (random_.chance(15)) return finish(ended.xid, Status::aborted);
  for (const std::size_t number : ended.events) {
    events_[number].committed = true;
    if (events_[number].wanted) of_key_[ended.key].push_back(number);
  }
  commit(ended.xid, !random_.chance(40));
}

void Database::finish_writers() {
  while (!writers_.empty()) advance(writers_[random_.below(writers_.size())]);
}

store::Visible Database::snapshot() const {
  store::Visible snapshot{.xmax = newest_finished_ + 1};
  for (const std::uint64_t xid : running_) {
    if (xid < snapshot.xmax) snapshot.running.push_back(xid);
  }
  return snapshot;
}

std::uint64_t Database::begin() {
  status_.push_back(Status::running);
  running_.push_back(next_xid_);
  return next_xid_++;
}

void Database::commit(std::uint64_t xid, bool durably) {
  newest_logged_xid_ = std::max(newest_logged_xid_, xid);
  log();
  committed_at_[xid] = inserted_;
  finish(xid, Status::committed);
  if (durably) flush();
}

void Database::finish(std::uint64_t xid, Status status) {
  status_[xid] = status;
  std::erase(running_, xid);
  newest_finished_ = std::max(newest_finished_, xid);
}

void Database::flush() {
  flushed_ = inserted_;
  durable_ = {.newest_xid = newest_logged_xid_, .sequence = sequence_logged_};
  committed_at_.clear();
}

std::vector<std::size_t> Database::crash() {
  std::vector<std::size_t> lost;
  for (const auto& [xid, at] : committed_at_) status_[xid] = Status::aborted;
  for (const std::uint64_t xid : running_) status_[xid] = Status::aborted;
  for (std::size_t number = 0; number < events_.size(); ++number) {
    WrittenEvent& event = events_[number];
    if (event.committed && committed_at_.contains(event.xid)) {
      event.committed = false;
      lost.push_back(number);
      std::erase(of_key_[event.key], number);
    }
  }
  std::erase_if(rows_, [&](std::size_t number) { return !events_[number].committed; });
  for (WrittenEvent& event : events_) {
    if (!event.committed) event.xid = 0;  // another transaction may get it
  }
  status_.resize(durable_.newest_xid + 1);
  committed_at_.clear();
  running_.clear();
  writers_.clear();
  std::fill(locks_.begin(), locks_.end(), false);
  next_xid_ = durable_.newest_xid + 1;
  newest_finished_ = durable_.newest_xid;
  newest_logged_xid_ = durable_.newest_xid;
  sequence_ = sequence_logged_ = durable_.sequence;
  inserted_ = flushed_;
  ++incarnation_;
  return lost;
}

}  // namespace outbox::sim
