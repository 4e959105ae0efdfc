// The thread of one subscription. It owns the sink, steps the core of the loop (loop_core.hpp),
// carries out what the core decides, and logs. Other threads put pages and answers of the settler
// into its mailbox; a sink's own threads only wake it.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <optional>
#include <outbox/relay.hpp>
#include <outbox/sink.hpp>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/mutex.hpp"
#include "base/outage.hpp"
#include "feed/pump.hpp"
#include "relay/loop_core.hpp"
#include "relay/settler.hpp"
#include "relay/trust_deadline.hpp"

namespace outbox::relay {

/// What is kept when a loop ends: the sink, and the acked events that no written settlement covers,
/// or whose row of `parked` may still be there.
struct RetainedSink {
  std::unique_ptr<Sink> sink;
  Token next_token{1};
  std::vector<EventRef> unsettled_acks;
  std::vector<EventRef> retry_acks{};
};

class SubscriptionLoop final : private LoopPorts {
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
    /// Sends were measured. Called now and then, and at the end.
    std::function<void(const SendTotals& sends)> measured{};
    std::function<void()> replayed{};  ///< The replay is done here: see replayed().
  };

  SubscriptionLoop(store::SubscriptionRow row, format::Renderer renderer,
                   const std::vector<store::Strand>& strands, const store::ParkedKeys& parked,
                   const LoopOptions& options, RetainedSink retained, Settler& settler,
                   const TrustDeadline& trust, Listener listener);
  SubscriptionLoop(const SubscriptionLoop&) = delete;
  SubscriptionLoop& operator=(const SubscriptionLoop&) = delete;
  SubscriptionLoop(SubscriptionLoop&&) = delete;
  SubscriptionLoop& operator=(SubscriptionLoop&&) = delete;
  ~SubscriptionLoop() override;

  void start();

  // Any thread.
  void read_from(feed::Pump& pump);
  void stop_reading(feed::Pump& pump);
  /// A person has changed parked events.
  void parked_changed();
  /// Sends nothing more, waits at most `grace` for what is in flight, settles, ends the thread.
  /// Without `settle` nothing more is written (the store or the lanes are lost). False: the sink
  /// does not return from a call.
  [[nodiscard]] bool stop(std::chrono::nanoseconds grace, bool settle);
  /// After stop() returned false: the loop no longer uses settler, trust and listener, and ends
  /// when the sink returns.
  void abandon();
  [[nodiscard]] bool ended() const;
  /// The settler has rows of this loop that are not written yet.
  [[nodiscard]] bool has_unwritten_rows() const;
  /// For a thread that does not end: never destroys the thread, the loop and the sink.
  static void leak(std::unique_ptr<SubscriptionLoop> loop);
  // After the thread has ended. Settlements written by then count, so stop the settler first.
  [[nodiscard]] RetainedSink take_sink();
  /// Everything sent got its outcome and is settled.
  [[nodiscard]] bool drained();
  /// Events that were in flight at the end, or are acked and not settled.
  [[nodiscard]] std::uint64_t abandoned();

  [[nodiscard]] SubscriptionReport report() const;
  /// The event that stopped the subscription.
  [[nodiscard]] std::optional<Rejection> rejection() const;
  [[nodiscard]] std::size_t window_events() const { return core_.window().events(); }
  [[nodiscard]] const store::SubscriptionRow& row() const { return core_.row(); }
  [[nodiscard]] const store::Holding& holding() const { return core_.holding(); }
  /// All strands have come to the same cursor, and their rows are written: started again, they are
  /// one.
  [[nodiscard]] bool could_merge() const;
  /// What it sends again; 0: it delivers.
  [[nodiscard]] std::int64_t replay() const {
    return core_.replay() ? core_.replay()->replay.id : 0;
  }
  /// The replay is done on its lanes, and that is written.
  [[nodiscard]] bool replayed() const;

 private:
  struct Stop {
    std::chrono::nanoseconds grace{0};
    bool settle{true};
  };
  /// What the pump, or the feed of a replay, sees of a strand.
  class Intake final : public feed::PageConsumer {
   public:
    Intake(SubscriptionLoop& loop, std::size_t number)
        : loop_(loop), strand_(loop.core_.strand(number)), number_(number) {}
    [[nodiscard]] bool has_room(std::size_t pages) const override {
      return strand_.has_room(pages);
    }
    void take_page(const std::shared_ptr<const store::Page>& page) override;

   private:
    SubscriptionLoop& loop_;
    Strand& strand_;
    const std::size_t number_;
  };
  struct Written {
    /// Whose rows are written; none: the results of the retries.
    std::optional<std::size_t> strand{};
    std::vector<std::uint64_t> released{};  ///< Keys that have nothing to do any more.
  };
  struct Mail {
    /// By the number of the strand.
    std::vector<std::pair<std::size_t, std::shared_ptr<const store::Page>>> pages;
    /// From the settler, in the order in which it wrote and read.
    std::vector<std::variant<Written, store::DueEvents, store::ParkedKeys>> answers;
    bool parked_changed{false};
    std::optional<Stop> stop;
  };
  /// Shared by the loop's thread and others. A shared_ptr: callbacks in the settler and the sink
  /// may outlive the loop.
  struct Mailbox {
    Mutex mutex;
    std::condition_variable_any changed;
    Mail mail OUTBOX_GUARDED_BY(mutex);
    bool rung OUTBOX_GUARDED_BY(mutex){false};
    bool ended OUTBOX_GUARDED_BY(mutex){false};  ///< The thread has left run().
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
  void take_last_mail();
  void offer(std::size_t strand, const std::shared_ptr<const store::Page>& page);
  [[nodiscard]] bool is_abandoned();

  // LoopPorts
  [[nodiscard]] TimePoint now() override;
  [[nodiscard]] bool trusted(TimePoint now) override;
  void distrusted() override;
  void room() override;
  void replay_done() override;
  void write(ProgressWork work, std::optional<std::size_t> strand) override;
  void read_due(std::size_t besides, const std::vector<store::AskedRow>& asked) override;
  void read_keys() override;
  [[nodiscard]] std::optional<std::vector<std::int64_t>> try_range(
      const store::Trials::Range& range) override;
  void culprit_found(const EventView& event, std::size_t deaths) override;
  void end_trial(const std::vector<std::int64_t>& keep, std::optional<std::size_t> tried) override;

  void publish_state();
  void publish_measured(TimePoint now);
  void look_at_transport();
  void log_changes();
  void log_rejection(const Rejection& rejection);
  void log_recovery(const Outage::Over& over);
  void log_trial_over(std::size_t tried);
  void log_work(const ProgressWork& work);
  void log_parked(const std::vector<store::ParkedEvent>& parked);
  void log_skipped(const store::ReplayProgress& progress);
  void log_dead(std::int64_t seq, const EventId& id, std::size_t attempts,
                const std::string& error);
  [[nodiscard]] std::string trouble() const;

  const std::shared_ptr<Mailbox> box_{std::make_shared<Mailbox>()};
  /// None after abandon(). The sink is never called with the mutex held.
  Mutex links_mutex_;
  std::optional<Links> links_ OUTBOX_GUARDED_BY(links_mutex_);

  // The loop's thread only; any after it has ended.
  std::unique_ptr<Sink> sink_;
  LoopCore core_;
  std::vector<std::unique_ptr<Intake>> intakes_;
  bool reported_rejection_{false};
  TimePoint measured_at_{};
  std::uint64_t looked_at_opening_{0};
  bool insecure_{false};
  Outage outage_;
  std::optional<TimePoint> logged_pause_;
  TimePoint log_parked_at_{};         ///< Not again before.
  std::uint64_t parked_unlogged_{0};  ///< Since the last line.

  std::jthread thread_;
};

}  // namespace outbox::relay
