// One subscription at work: a thread that feeds the delivery core with what happens and does what it says. It owns the
// sink; the reader thread offers pages, the settler's thread reports settlements, the sink's threads ring the bell.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <outbox/relay.hpp>
#include <outbox/sink.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/outage.hpp"
#include "event/filter.hpp"
#include "event/render.hpp"
#include "relay/delivery_core.hpp"
#include "relay/settler.hpp"
#include "store/store.hpp"

namespace outbox::relay {

/// Past this moment the relay may no longer publish: the lease could have been given to another.
class TrustDeadline {
 public:
  void extend_to(TimePoint until) {
    until_.store(until.time_since_epoch().count(), std::memory_order_release);
  }
  void end() { until_.store(0, std::memory_order_release); }
  [[nodiscard]] bool holds(TimePoint now) const {
    return now.time_since_epoch().count() < until_.load(std::memory_order_acquire);
  }

 private:
  std::atomic<TimePoint::rep> until_{0};
};

/// What survives of a subscription when the store is lost: its sink, and what the sink acked in vain.
struct Remains {
  Token next_token{1};
  std::unique_ptr<Sink> sink;
  std::vector<EventRef> unsettled_acks;
};

struct LoopOptions {
  CoreOptions core;
  std::int64_t generation{0};
};

class SubscriptionLoop {
 public:
  /// Told from the loop's thread.
  struct Listener {
    std::function<void()> room;                      ///< The window has room again.
    std::function<void(const Rejection&)> rejected;  ///< The subscription stopped itself.
    std::function<void()> distrusted;                ///< The trust deadline passed.
  };

  SubscriptionLoop(store::SubscriptionRow row, event::Renderer renderer, store::Cursor start,
                   LoopOptions options, Remains remains, Settler& settler,
                   const TrustDeadline& trust, Listener listener);
  SubscriptionLoop(const SubscriptionLoop&) = delete;
  SubscriptionLoop& operator=(const SubscriptionLoop&) = delete;
  SubscriptionLoop(SubscriptionLoop&&) = delete;
  SubscriptionLoop& operator=(SubscriptionLoop&&) = delete;
  ~SubscriptionLoop();

  void start();

  // Any thread.
  void offer(std::shared_ptr<const store::Page> page);
  /// True when the window takes another page of about so many events and bytes.
  [[nodiscard]] bool has_room(std::size_t events, std::size_t bytes) const;
  /// It wants to hear that there is nothing more to read, also in a page without events.
  [[nodiscard]] bool asks_for_the_end() const {
    return asks_for_the_end_.load(std::memory_order_relaxed);
  }
  enum class Stopped : std::uint8_t {
    ended,
    in_a_call  ///< The sink does not return from a call: the thread still runs, see leave().
  };
  /// Sends nothing more, waits at most `grace` for what is in flight, settles, ends the thread. With `settle` false
  /// nothing is written any more (the store or the lanes are lost).
  [[nodiscard]] Stopped stop(std::chrono::nanoseconds grace, bool settle);
  /// For a loop that stop() left in a call of its sink: it no longer touches settler, trust and listener, and ends when
  /// the sink returns.
  void leave();
  /// True once the thread has ended, or is about to without touching anything.
  [[nodiscard]] bool ended() const;
  /// Gives up on a thread that never ended: the thread, this object and the sink stay behind for ever.
  static void leak(std::unique_ptr<SubscriptionLoop> loop);
  // After stop(), unless it is still in a call. What the settler has written by then counts, so ask when it has ended.
  /// The sink and what it acked in vain.
  [[nodiscard]] Remains take_remains();
  /// Everything in flight got its outcome and is settled.
  [[nodiscard]] bool drained();
  /// Events that were in flight, or are acked and not settled.
  [[nodiscard]] std::uint64_t abandoned();

  [[nodiscard]] SubscriptionReport report() const;
  /// Fetched and not settled.
  [[nodiscard]] std::size_t window_events() const {
    return window_events_.load(std::memory_order_relaxed);
  }

  [[nodiscard]] const store::SubscriptionRow& row() const { return row_; }
  [[nodiscard]] const store::Cursor& start_cursor() const { return start_; }

 private:
  struct Mail {
    std::vector<std::shared_ptr<const store::Page>> pages;
    bool settled{false};
    bool stop{false};
  };
  /// Shared with the callbacks given to the settler and the sink, which may come after this loop is gone.
  struct Mailbox {
    std::mutex mutex;
    std::condition_variable bell;
    Mail mail;
    bool rung{false};
    bool ended{false};  ///< The thread has left run().
    std::condition_variable over;

    void ring();
  };

  void run();
  [[nodiscard]] Mail wait_for_mail();
  void take(Mail&& mail, TimePoint now);
  void take_page(const store::Page& page, TimePoint now);
  void take_outcomes(TimePoint now);
  void send_what_may_go(TimePoint now);
  void settle(TimePoint now);
  void open_if_wanted(TimePoint now);
  void watch_trust(TimePoint now);
  void publish_state();
  void log_changes();
  void log_recovery(const Outage::Over& over);
  [[nodiscard]] std::string trouble() const;
  [[nodiscard]] bool is_over(TimePoint now);
  [[nodiscard]] bool trusted(TimePoint now);
  [[nodiscard]] bool is_cut();
  void take_last_mail();

  const store::SubscriptionRow row_;
  const event::Renderer renderer_;
  const event::Filter filter_;
  const store::Cursor start_;
  const LoopOptions options_;
  /// What the thread needs of the tenure; nothing after leave(). The sink is never called under its lock.
  struct Ties {
    std::mutex mutex;
    bool cut{false};
    Settler& settler;
    const TrustDeadline& trust;
    const Listener listener;
  };
  Ties ties_;

  // The loop's thread only.
  std::unique_ptr<Sink> sink_;
  DeliveryCore core_;
  event::RenderBuffer buffer_;
  std::vector<Outcome> outcomes_;
  std::vector<std::uint8_t> wanted_;
  std::uint64_t settlements_{0};
  bool purged_{false};
  bool told_rejection_{false};
  bool was_opened_{false};
  bool send_stalled_{false};
  Mode logged_{Mode::reopening};
  Outage outage_;
  std::optional<TimePoint> logged_pause_;
  std::optional<TimePoint> stop_by_;
  std::size_t batch_limit_{1000};  ///< What the sink may take; no more is rendered.
  std::uint64_t given_up_{0};      ///< In flight at the end of the grace period.

  // Shared.
  std::atomic<std::size_t> window_events_{0};  ///< In the core and in the mail.
  std::atomic<std::size_t> window_bytes_{0};
  std::atomic<bool> asks_for_the_end_{false};
  const std::shared_ptr<Mailbox> box_;
  std::chrono::nanoseconds grace_{0};
  bool may_settle_{true};
  SubscriptionReport report_;

  std::jthread thread_;
};

}  // namespace outbox::relay
