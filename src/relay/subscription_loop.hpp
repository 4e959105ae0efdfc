// The thread of one subscription. It owns the sink, passes pages and outcomes to the delivery cores
// of its strands, and carries out their decisions. Other threads put pages and written settlements
// into its mailbox; a sink's own threads only wake it.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <optional>
#include <outbox/relay.hpp>
#include <outbox/sink.hpp>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/mutex.hpp"
#include "base/outage.hpp"
#include "base/rate_limit.hpp"
#include "feed/pump.hpp"
#include "format/render.hpp"
#include "relay/delivery_core.hpp"
#include "relay/key_gate.hpp"
#include "relay/offering.hpp"
#include "relay/replay.hpp"
#include "relay/retry_core.hpp"
#include "relay/settler.hpp"
#include "relay/strand.hpp"
#include "relay/trial_gate.hpp"
#include "relay/trust_deadline.hpp"
#include "sink/run_owner.hpp"
#include "store/store.hpp"
#include "subscription/filter.hpp"

namespace outbox::relay {

/// What is kept when a loop ends: the sink, and the acked events that no written settlement covers,
/// or whose row of `parked` may still be there.
struct RetainedSink {
  std::unique_ptr<Sink> sink;
  Token next_token{1};
  std::vector<EventRef> unsettled_acks;
  std::vector<EventRef> retry_acks{};
};

struct LoopOptions {
  Window::Limits window{};
  std::chrono::nanoseconds settle_interval{std::chrono::milliseconds(50)};
  std::size_t settle_events{1000};
  store::Holding holding{};  ///< What the relay holds of the subscription's group.
  TrialGate trial{};         ///< What former relays left behind.
  /// If set, the loop sends this replay instead of delivering what is new. The strands and the
  /// blocked keys are then those of the replay.
  std::shared_ptr<ReplayRun> replay{};
};

class SubscriptionLoop {
 public:
  /// Called by the loop's thread.
  struct Listener {
    std::function<void()> room;        ///< The window has room again.
    std::function<void()> rejected;    ///< See rejection().
    std::function<void()> distrusted;  ///< The trust deadline passed.
    /// Records that these events are sent next. Returns the generations of former runs that died;
    /// nothing if the store is lost.
    std::function<std::optional<std::vector<std::int64_t>>(const store::Trials::Range&)>
        try_range{};
    /// The trial is over; these generations of former runs still matter.
    std::function<void(const std::vector<std::int64_t>& keep)> end_trial{};
    std::function<void()> replayed{};  ///< The replay is done here: see replayed().
  };

  SubscriptionLoop(store::SubscriptionRow row, format::Renderer renderer,
                   const std::vector<store::Strand>& strands, const store::ParkedKeys& parked,
                   const LoopOptions& options, RetainedSink retained, Settler& settler,
                   const TrustDeadline& trust, Listener listener);
  SubscriptionLoop(const SubscriptionLoop&) = delete;
  SubscriptionLoop& operator=(const SubscriptionLoop&) = delete;
  ~SubscriptionLoop();

  void start();

  // Any thread may call these.
  void read_from(feed::Pump& pump);
  void stop_reading(feed::Pump& pump);
  /// A person has changed parked events.
  void parked_changed();
  /// Sends nothing more, waits at most `grace` for what is in flight, settles, and ends the thread.
  /// Without `settle` nothing more is written, because the store or the lanes are lost. Returns
  /// false if the sink does not return from a call.
  [[nodiscard]] bool stop(std::chrono::nanoseconds grace, bool settle);
  /// Call it after stop() returned false. The loop then no longer uses settler, trust and listener,
  /// and ends when the sink returns.
  void abandon();
  [[nodiscard]] bool ended() const;
  /// Whether the settler has rows of this loop that are not written yet.
  [[nodiscard]] bool has_unwritten_rows() const;
  /// Never destroys the loop, its thread and its sink, because the thread does not end.
  static void leak(std::unique_ptr<SubscriptionLoop> loop);
  // The next three are called after the thread has ended. Settlements written by then count, so the
  // settler must be stopped first.
  [[nodiscard]] RetainedSink take_sink();
  /// Whether everything that was sent got its outcome and is settled.
  [[nodiscard]] bool drained();
  /// How many events were in flight at the end, or are acked and not settled.
  [[nodiscard]] std::uint64_t abandoned();

  [[nodiscard]] SubscriptionReport report() const;
  /// The event that stopped the subscription.
  [[nodiscard]] std::optional<Rejection> rejection() const;
  [[nodiscard]] std::size_t window_events() const { return window_.events(); }
  [[nodiscard]] const store::SubscriptionRow& row() const { return row_; }
  [[nodiscard]] const store::Holding& holding() const { return holding_; }
  /// Whether all strands have come to the same cursor and their rows are written. If the loop is
  /// started again, they are one strand.
  [[nodiscard]] bool could_merge() const;
  /// The replay that the loop sends; 0 if it delivers what is new.
  [[nodiscard]] std::int64_t replay() const { return replay_ ? replay_->replay.id : 0; }
  /// Whether the replay is done on its lanes, and that is written.
  [[nodiscard]] bool replayed() const;

 private:
  struct Stop {
    std::chrono::nanoseconds grace{0};
    bool settle{true};
  };
  struct Written {
    /// The strand whose rows are written; not set for results of the retries.
    std::optional<std::size_t> strand{};
    std::vector<std::uint64_t> released{};  ///< Keys that have nothing to do any more.
  };
  struct Mail {
    std::vector<std::pair<Strand*, std::shared_ptr<const store::Page>>> pages;
    /// The settler's answers, in the order in which it wrote and read.
    std::vector<std::variant<Written, store::DueEvents, store::ParkedKeys>> answers;
    bool parked_changed{false};
    std::optional<Stop> stop;
  };
  /// Shared by the loop's thread and others. It is held by shared_ptr, because callbacks in the
  /// settler and the sink may outlive the loop.
  struct Mailbox {
    Mutex mutex;
    std::condition_variable_any changed;
    Mail mail OUTBOX_GUARDED_BY(mutex);
    bool rung OUTBOX_GUARDED_BY(mutex){false};
    bool ended OUTBOX_GUARDED_BY(mutex){false};  ///< Whether the thread has left run().
    std::size_t unwritten OUTBOX_GUARDED_BY(mutex){0};
    SubscriptionReport report OUTBOX_GUARDED_BY(mutex);
    bool could_merge OUTBOX_GUARDED_BY(mutex){false};
    bool replayed OUTBOX_GUARDED_BY(mutex){false};
    std::optional<Rejection> rejection OUTBOX_GUARDED_BY(mutex);

    void ring();
    void written(Written written);
    template <class Answer>
    void read(Answer answer) {
      {
        const MutexLock lock(mutex);
        mail.answers.emplace_back(std::move(answer));
        rung = true;
      }
      changed.notify_all();
    }
  };
  /// The parts of the tenure that the thread uses.
  struct Links {
    Settler* settler;
    const TrustDeadline* trust;
    Listener listener;
  };

  void run();
  [[nodiscard]] Mail wait_for_mail();
  void take(Mail&& mail, TimePoint now);
  void tell_of_room();
  [[nodiscard]] bool needs_loop(const store::Page& page) const;
  void take_page(Strand& strand, std::shared_ptr<const store::Page> page, TimePoint now);
  void take_answers(Mail& mail, TimePoint now);
  void take_written(const Written& written, TimePoint now);
  void read_what_is_due(TimePoint now);
  void read_keys_again(TimePoint now);
  void take_stop(const Stop& stop, TimePoint now);
  void stop_sending(bool fill_gaps, TimePoint now);
  void take_outcomes(TimePoint now);
  void leave_runs_to_owner(TimePoint now);
  void watch_trust(TimePoint now);
  void open_if_wanted(TimePoint now);
  void send_what_may_go(TimePoint now);
  /// Returns whether something was sent.
  bool send_batch(std::size_t strand, TimePoint now);
  bool send_retries(TimePoint now);
  /// How many of these events may be sent now, on trial or not.
  [[nodiscard]] std::size_t may_go(std::size_t source, store::LaneMask lanes,
                                   std::span<const DeliveryCore::Send> sends);
  /// See Listener.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> try_range(
      const store::Trials::Range& range);
  void end_trial();
  void watch_trial(TimePoint now);
  [[nodiscard]] Error death_of(const EventView& event, std::size_t deaths) const;
  /// How many events the subscription's rate allows now. If it allows none, the loop waits until it
  /// does.
  [[nodiscard]] std::size_t rate_allows(TimePoint now);
  /// Returns how many events need no other offer, because the sink took them or offering_ keeps
  /// them back.
  std::size_t hand_over(Token prefix, std::span<const DeliveryCore::Send> sends, TimePoint now);
  void settle(TimePoint now);
  void settle_retries(TimePoint now);
  /// `strand` is the strand whose rows they are; not set for results of the retries.
  void write(Settler::Work work, std::optional<std::size_t> strand);
  [[nodiscard]] bool all_finished() const;
  [[nodiscard]] bool is_over(TimePoint now);
  [[nodiscard]] bool trusted(TimePoint now);
  [[nodiscard]] bool is_abandoned();
  void publish_state();
  void log_changes();
  void log_recovery(const Outage::Over& over);
  void log_parked(const std::vector<store::ParkedEvent>& parked);
  void log_skipped(const store::ReplayProgress& progress);
  void log_dead(std::int64_t seq, const EventId& id, std::size_t attempts,
                const std::string& error);
  [[nodiscard]] std::string trouble() const;
  void take_last_mail();
  void bring_strands_together();
  void settle_replay(std::size_t strand, const DeliveryCore::Due& due);
  void watch_replay();
  [[nodiscard]] std::vector<EventRef> unsettled_acks() const;
  [[nodiscard]] std::vector<EventRef> retry_acks() const;
  [[nodiscard]] std::uint64_t count_unsettled() const;

  const store::SubscriptionRow row_;
  format::Renderer renderer_;
  const subscription::Filter filter_;
  const store::Holding holding_;
  const std::shared_ptr<ReplayRun> replay_;
  /// While a replay is sent: the acks that live delivery still has to settle.
  const std::vector<EventRef> live_acks_;
  const std::vector<EventRef> live_retry_acks_;
  Window window_;
  const std::shared_ptr<Mailbox> box_{std::make_shared<Mailbox>()};
  /// Not set after abandon(). The sink is never called with the mutex held.
  Mutex links_mutex_;
  std::optional<Links> links_ OUTBOX_GUARDED_BY(links_mutex_);

  // Used by the loop's thread only, and by any thread after that one has ended.
  std::unique_ptr<Sink> sink_;
  /// The sink, if its sends may go on without the relay; otherwise null.
  sink::RunOwner* const run_owner_;
  Offering offering_;
  SinkState sink_state_;
  KeyGate gate_;
  TrialGate trial_;
  /// How many relays died of the first event that may_go() was asked about; 0 if it is no culprit.
  std::size_t culprit_deaths_{0};
  bool trial_waits_{false};  ///< The trial waits for events that are in flight or not settled.
  RetryCore retries_;
  std::vector<std::unique_ptr<Strand>> strands_;
  format::RenderBuffer buffer_;
  std::vector<Outcome> outcomes_;
  std::vector<std::uint8_t> wanted_;
  std::uint64_t settlements_{0};
  bool purged_{false};
  bool reported_rejection_{false};
  bool send_stalled_{false};
  std::optional<TimePoint> keys_at_;  ///< When the keys of parked events are read again.
  bool reading_keys_{false};
  std::optional<RateLimit> rate_;
  std::optional<TimePoint> rate_wait_;  ///< When the rate allows the next event to be sent.
  Outage outage_;
  std::optional<TimePoint> logged_pause_;
  TimePoint log_parked_at_{};         ///< The next line may be logged from this time on.
  std::uint64_t parked_unlogged_{0};  ///< How many events were parked since the last line.
  std::optional<TimePoint> stop_by_;
  bool may_settle_{true};
  /// How many events are rendered for one send(). It adapts to how many the sink takes.
  std::size_t batch_limit_{1000};
  std::uint64_t given_up_{0};  ///< How many events were in flight at the end of the grace period.

  std::jthread thread_;
};

}  // namespace outbox::relay
