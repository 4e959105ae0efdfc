// What the loop of a subscription decides: which of its cores gets a page, an outcome or an answer
// of the store, what is sent and written next, when the next step is due, and when a stop is over.
// Pure: it starts no thread, waits for nothing, knows no time but what it is told, and does not
// log. It calls the sink, and its driver through LoopPorts: subscription_loop.cpp in a relay,
// tests/sim/groups/loop.cpp in the simulation (docs/design/relay.md, "The core of a loop").
//
// Threads: one thread at a time, except what is said to be for any thread or for the one that reads
//          pages.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <outbox/sink.hpp>
#include <span>
#include <vector>

#include "base/rate_limit.hpp"
#include "format/render.hpp"
#include "relay/delivery_core.hpp"
#include "relay/key_gate.hpp"
#include "relay/loop_ports.hpp"
#include "relay/offering.hpp"
#include "relay/replay.hpp"
#include "relay/retry_core.hpp"
#include "relay/send_meter.hpp"
#include "relay/strand.hpp"
#include "relay/trial_gate.hpp"
#include "sink/run_owner.hpp"
#include "store/store.hpp"
#include "subscription/filter.hpp"

namespace outbox::relay {

/// How quickly a loop retries and looks again. The simulation has shorter times.
struct LoopPace {
  BackoffPolicy sink_pauses{};
  std::size_t parked_at_once{500};  ///< See ParkingRules::max_at_once.
  std::chrono::nanoseconds slow_after{std::chrono::seconds(1)};
  BackoffPolicy failing{.first = std::chrono::milliseconds(100),
                        .longest = std::chrono::seconds(1)};
  std::chrono::nanoseconds look_at_runs{std::chrono::seconds(1)};
  /// When rows that wait behind one that has gone already are looked for.
  std::chrono::nanoseconds find_orphans{std::chrono::seconds(1)};
  /// After a person's changes the keys of parked events are read again: so long after the first of
  /// them.
  std::chrono::nanoseconds read_keys_again{std::chrono::seconds(5)};
};

struct LoopOptions {
  Window::Limits window{};
  std::chrono::nanoseconds settle_interval{std::chrono::milliseconds(50)};
  std::size_t settle_events{1000};
  store::Holding holding{};  ///< Of the subscription's group.
  TrialGate trial{};         ///< What the relays before left behind.
  /// Sends this again instead of delivering what is new; the strands and the blocked keys are then
  /// those of the replay.
  std::shared_ptr<ReplayRun> replay{};
  LoopPace pace{};
};

/// Where a loop begins: in the store, and what the loop before it left.
struct LoopBeginning {
  std::vector<store::Strand> strands;
  store::ParkedKeys parked{};
  Token next_token{1};
  std::vector<EventRef> unsettled_acks{};
  std::vector<EventRef> retry_acks{};
};

class LoopCore {
 public:
  /// The number that the retries have among the sources of tokens. The strands have smaller ones.
  static constexpr std::size_t kRetries = 64;
  /// The source of a token that the sink has.
  [[nodiscard]] static constexpr std::size_t source_of(Token token) {
    return static_cast<std::size_t>(token >> kSourceShift);
  }

  /// `sink` and `ports` outlive the core, and are not called here, except that a sink which owns
  /// runs is told its rules.
  LoopCore(store::SubscriptionRow row, format::Renderer renderer, LoopBeginning beginning,
           const LoopOptions& options, Sink& sink, LoopPorts& ports, TimePoint now);

  // ---- pages

  [[nodiscard]] std::size_t strands() const { return strands_.size(); }
  /// For the thread that reads pages.
  [[nodiscard]] Strand& strand(std::size_t number) { return *strands_[number]; }
  /// Any thread: whether a step should follow page_read() at once. In a backlog of events that
  /// others want, none is needed for each page.
  [[nodiscard]] bool needs_step(const store::Page& page) const;

  // ---- what has happened, in any order; then step()

  /// `now` and `wall` are one moment by both clocks. Only what is measured depends on them.
  void tell_time(TimePoint now, Timestamp wall) { meter_.tell_time(now, wall); }

  /// A page that the strand has accepted.
  void page_read(std::size_t strand, std::shared_ptr<const store::Page> page, TimePoint now);
  /// The answer to LoopPorts::write(). `released`: keys that have nothing to do any more.
  void written(std::optional<std::size_t> strand, const std::vector<std::uint64_t>& released,
               TimePoint now);
  void due_read(store::DueEvents due, TimePoint now);
  void keys_read(const store::ParkedKeys& keys);
  /// A person has changed parked events. Answers that were given before are told before.
  void parked_changed(TimePoint now);
  /// Sends nothing more, and waits until `by` for what is in flight. Without `settle` nothing more
  /// is written (the store or the lanes are lost).
  void stop_requested(TimePoint by, bool settle, TimePoint now);

  // ---- the driver's loop: waits until next_at(), or until something happens or the sink calls
  // wake(); steps; asks whether it is over

  void step(TimePoint now);
  [[nodiscard]] TimePoint next_at(TimePoint now) const;
  /// Stopping, and nothing is left to do or to wait for. What is in flight at the end of the grace
  /// period is given up.
  [[nodiscard]] bool is_over(TimePoint now);

  // ---- how it stands

  [[nodiscard]] const store::SubscriptionRow& row() const { return row_; }
  [[nodiscard]] const store::Holding& holding() const { return holding_; }
  /// Null: it delivers.
  [[nodiscard]] const std::shared_ptr<ReplayRun>& replay() const { return replay_; }
  [[nodiscard]] const SinkState& sink_state() const { return sink_state_; }
  [[nodiscard]] const KeyGate& gate() const { return gate_; }
  [[nodiscard]] const TrialGate& trial() const { return trial_; }
  [[nodiscard]] const Window& window() const { return window_; }
  struct Counts {
    std::uint64_t acked{0};
    std::uint64_t filtered{0};
    std::uint64_t parked{0};
    std::uint64_t settlements{0};
  };
  [[nodiscard]] Counts counts() const;
  /// What was measured since the last call, if anything was.
  [[nodiscard]] std::optional<SendTotals> take_measured() { return meter_.take(); }
  /// Whether everything that was read is settled.
  [[nodiscard]] bool idle() const;
  /// Whether all strands have come to the same cursor, and their rows are written: started again,
  /// they are one.
  [[nodiscard]] bool could_merge() const { return could_merge_; }
  /// Whether everything that was sent got its outcome and is settled, after a stop.
  [[nodiscard]] bool finished() const;
  /// How many events were in flight at the end of the grace period, and were not acked then.
  [[nodiscard]] std::uint64_t given_up() const { return given_up_; }
  /// What is acked and not settled, for the next loop. Of a replay: what live delivery still has to
  /// settle.
  [[nodiscard]] std::vector<EventRef> unsettled_acks() const;
  [[nodiscard]] std::vector<EventRef> retry_acks() const;
  /// How many events are in one of these lists, or in both.
  [[nodiscard]] std::uint64_t count_unsettled() const;
  /// Greater than every token in use so far.
  [[nodiscard]] Token next_token() const;

 private:
  static constexpr unsigned kSourceShift = 57;
  static constexpr Token kTokenMask = (Token{1} << kSourceShift) - 1;
  [[nodiscard]] static constexpr Token prefix_of(std::size_t source) {
    return static_cast<Token>(source) << kSourceShift;
  }

  void begin_retries(const LoopBeginning& beginning, TimePoint now);
  void begin_strands(const LoopBeginning& beginning, const LoopOptions& options);
  void stop_sending(bool fill_gaps, TimePoint now);
  void tell_of_room();
  void watch_replay();
  void read_what_is_due(TimePoint now);
  void read_keys_again(TimePoint now);
  void take_outcomes(TimePoint now);
  void leave_runs_to_owner(TimePoint now);
  void watch_trust(TimePoint now);
  void open_if_wanted(TimePoint now);
  void settle(TimePoint now);
  void look_again_at(const std::vector<store::ParkedEvent>& parked, TimePoint now);
  void settle_retries(TimePoint now);
  void bring_strands_together();
  void give_up_in_flight(TimePoint now);

  // loop_sending.cpp
  void send_what_may_go(TimePoint now);
  /// Returns whether something was sent.
  bool send_batch(std::size_t strand, TimePoint now);
  bool send_retries(TimePoint now);
  /// How many of these events may go now, on trial or not.
  [[nodiscard]] std::size_t may_go(std::size_t source, store::LaneMask lanes,
                                   std::span<const DeliveryCore::Send> sends);
  void end_trial();
  void watch_trial(TimePoint now);
  [[nodiscard]] Error describe_death(const EventView& event, std::size_t deaths);
  /// How many may be sent now by the subscription's rate. 0: the loop waits until one may.
  [[nodiscard]] std::size_t rate_allows(TimePoint now);
  /// Returns how many need no other offer: the sink took them, or offering_ keeps them back.
  std::size_t hand_over(Token prefix, std::span<const DeliveryCore::Send> sends, TimePoint now);

  const store::SubscriptionRow row_;
  format::Renderer renderer_;
  const subscription::Filter filter_;
  const store::Holding holding_;
  const std::shared_ptr<ReplayRun> replay_;
  const LoopPace pace_;
  // Of a replay: what live delivery still has to settle.
  const std::vector<EventRef> live_acks_;
  const std::vector<EventRef> live_retry_acks_;
  Window window_;
  Sink& sink_;
  LoopPorts& ports_;
  sink::RunOwner* const run_owner_;  ///< The sink; null: no sends that go on without the relay.

  Offering offering_;
  SinkState sink_state_;
  KeyGate gate_;
  TrialGate trial_;
  /// Of the event that may_go() was asked about first; 0: it is no culprit.
  std::size_t culprit_deaths_{0};
  bool trial_waits_{false};  ///< For what is in flight, or not settled.
  SendMeter meter_;
  RetryCore retries_;
  std::vector<std::unique_ptr<Strand>> strands_;
  format::RenderBuffer buffer_;
  std::vector<Outcome> outcomes_;
  std::vector<std::uint8_t> wanted_;
  std::uint64_t settlements_{0};
  bool made_room_{false};  ///< Since the last step: pages were passed, or settlements written.
  bool settled_{false};    ///< Since the last step a settlement was written.
  bool purged_{false};
  bool could_merge_{false};
  bool send_stalled_{false};
  bool sends_more_{false};            ///< The last step ended before everything was offered.
  std::optional<TimePoint> keys_at_;  ///< When the keys of parked events are read again.
  bool reading_keys_{false};
  std::optional<RateLimit> rate_;
  std::optional<TimePoint> rate_wait_;  ///< There is something to send then.
  std::optional<TimePoint> stop_by_;
  bool may_settle_{true};
  /// Events rendered for one send(): adapts to how many the sink takes.
  std::size_t batch_limit_{1000};
  std::uint64_t given_up_{0};
};

}  // namespace outbox::relay
