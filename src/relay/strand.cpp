#include "relay/strand.hpp"

#include <utility>

namespace outbox::relay {
namespace {

// The cursor of an idle subscription follows the end of the log when it is this far behind, at most
// once a second: the floor of the next reader and the oldest partition that must be kept depend on
// it.
constexpr std::int64_t kIdleSeqs = 10000;
constexpr std::uint64_t kIdleHorizon = 100000;
constexpr std::chrono::seconds kFollowEvery{1};

}  // namespace

Strand::Strand(const CoreOptions& options, store::Cursor start, SinkState& sink, Window& window,
               KeyGate& gate)
    : core(options, start, sink, window, gate),
      window_(window),
      start_(std::move(start)),
      lanes_(options.row.lanes) {}

bool Strand::accept(const store::Page& page, TimePoint now) {
  if (!must_see(page, now)) return false;
  seen_bound_ = page.pair->bound;
  seen_horizon_ = page.pair->horizon;
  seen_at_ = now;
  window_.add(page);
  return true;
}

bool Strand::must_see(const store::Page& page, TimePoint now) const {
  if (!page.events.empty()) return true;
  const bool ends_begun_pair = page.drained && page.from != 0;
  if (ends_begun_pair) return true;
  if (wants_end_.load(std::memory_order_relaxed) && (page.drained || page.caught_up)) return true;
  return page.drained && now - seen_at_ >= kFollowEvery &&
         (page.pair->bound - seen_bound_ >= kIdleSeqs ||
          page.pair->horizon - seen_horizon_ >= kIdleHorizon);
}

}  // namespace outbox::relay
