// One strand of a subscription: its delivery core, and which pages of the log the core must see.
// Pure. Shared by the thread that reads pages and the one that steps the loop's core.
#pragma once

#include <atomic>

#include "relay/delivery_core.hpp"

namespace outbox::relay {

class Strand {
 public:
  Strand(const CoreOptions& options, store::Cursor start, SinkState& sink, Window& window,
         KeyGate& gate);

  // Called by the thread that reads pages.
  [[nodiscard]] bool has_room(std::size_t pages) const { return window_.has_room(pages); }
  /// Whether the core must see this page. If so, the window counts it from now on.
  [[nodiscard]] bool accept(const store::Page& page, TimePoint now);

  [[nodiscard]] const store::Cursor& start() const { return start_; }
  [[nodiscard]] store::LaneMask lanes() const { return lanes_; }

  // Used by the loop's thread.
  DeliveryCore core;
  /// Call after each change of what the core remembers. `meeting` says that the cursor should
  /// follow to the end of the log.
  void update_wanted_end(bool meeting) {
    wants_end_.store(meeting || core.remembers(), std::memory_order_relaxed);
  }

 private:
  [[nodiscard]] bool must_see(const store::Page& page, TimePoint now) const;

  Window& window_;
  const store::Cursor start_;
  const store::LaneMask lanes_;
  /// Whether the core needs the page that shows the end of the log, even if it has no events.
  std::atomic<bool> wants_end_{false};

  // About the last page that was accepted. Only the thread that reads pages uses these.
  std::int64_t seen_bound_{0};
  std::uint64_t seen_horizon_{0};
  TimePoint seen_at_{};
};

}  // namespace outbox::relay
