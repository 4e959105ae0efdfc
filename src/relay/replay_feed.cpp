#include "relay/replay_feed.hpp"

#include <deque>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/thread.hpp"
#include "event/headers.hpp"
#include "relay/replay.hpp"

namespace outbox::relay {
namespace {

/// While no consumer has room the feed looks again after this time even if room() is not called.
constexpr std::chrono::milliseconds kNoRoom{100};

/// Owns the memory that the events of a page refer to.
struct Storage {
  std::shared_ptr<const void> read;
  std::deque<std::string> headers;
};

}  // namespace

ReplayFeed::ReplayFeed(std::unique_ptr<store::Replays> replays,
                       std::vector<store::ReplayRequest> requests,
                       const subscription::ReplayChoice& choice,
                       std::function<void(const Error&)> failed)
    : replays_(std::move(replays)), filter_(choice), failed_(std::move(failed)) {
  for (auto& request : requests) {
    const std::int64_t position = request.position;
    strands_.push_back({.request = std::move(request), .given = position});
  }
}

void ReplayFeed::add(feed::PageConsumer& consumer) { strands_.at(added_++).consumer = &consumer; }

void ReplayFeed::start() {
  thread_ = start_thread("ob-replay", [this](const std::stop_token& stop) { run(stop); });
}

void ReplayFeed::room() {
  {
    const MutexLock lock(mutex_);
    rung_ = true;
  }
  changed_.notify_all();
}

void ReplayFeed::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const auto read = read_round(stop);
    if (!read) return failed_(read.error());
    if (*read) continue;
    const MutexLock lock(mutex_);
    (void)changed_.wait_for(mutex_, stop, kNoRoom,
                            [this]() OUTBOX_REQUIRES(mutex_) { return rung_; });
    rung_ = false;
  }
}

Result<bool> ReplayFeed::read_round(const std::stop_token& stop) {
  bool any = false;
  for (Strand& strand : strands_) {
    if (stop.stop_requested()) return false;
    if (strand.ended || strand.consumer == nullptr || !strand.consumer->has_room(1)) continue;
    any = true;
    OUTBOX_TRY(read_page(strand));
  }
  return any;
}

/// A page of which the filter leaves nothing is not passed on. The next page then continues the one
/// before it.
Status ReplayFeed::read_page(Strand& strand) {
  OUTBOX_TRY(store::ReplayPage read, replays_->page(strand.request));
  auto storage = std::make_shared<Storage>();
  storage->read = std::move(read.storage);
  auto page = std::make_shared<store::Page>();
  const std::string id = std::to_string(strand.request.replay);
  for (std::size_t i = 0; i < read.events.size(); ++i) {
    EventView event = read.events[i];
    if (read.held[i] != 0 || !filter_.matches(event)) continue;
    event.headers =
        storage->headers.emplace_back(event::with_header(event.headers, event::kReplayHeader, id));
    page->bytes += event.payload.size() + event.headers.size() + store::kEventOverhead;
    page->events.push_back(event);
  }
  strand.request.position = read.position;
  strand.ended = read.ended;
  if (page->events.empty() && !read.ended) return {};
  page->pair = replay_pair();
  page->from = std::exchange(strand.given, read.position);
  page->position = read.position;
  page->drained = read.ended;
  page->storage = std::move(storage);
  strand.consumer->take_page(page);
  return {};
}

}  // namespace outbox::relay
