// One strand of a subscription: its delivery core, and what passes the pump's pages to it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "feed/pump.hpp"
#include "relay/delivery_core.hpp"

namespace outbox::relay {

class Strand final : public feed::PageConsumer {
 public:
  /// Passes a page to the loop's thread.
  using Offer = std::function<void(Strand&, const std::shared_ptr<const store::Page>&)>;

  Strand(const CoreOptions& options, store::Cursor start, SinkState& sink, Window& window,
         KeyGate& gate, Offer offer);

  // Called by the pump's thread.
  [[nodiscard]] bool has_room(std::size_t pages) const override { return window_.has_room(pages); }
  void take_page(const std::shared_ptr<const store::Page>& page) override;

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
  [[nodiscard]] bool must_see(const store::Page& page) const;

  Window& window_;
  const store::Cursor start_;
  const store::LaneMask lanes_;
  const Offer offer_;
  /// Whether the core needs the page that shows the end of the log, even if it has no events.
  std::atomic<bool> wants_end_{false};

  // About the last page that was offered. Only the pump's thread uses these.
  std::int64_t seen_bound_{0};
  std::uint64_t seen_horizon_{0};
  TimePoint seen_at_{};
};

}  // namespace outbox::relay
