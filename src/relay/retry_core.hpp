// Decides about a subscription's parked events: which are sent now, and what becomes of them. It is
// pure, like the delivery cores. The events of a key form a chain: the next one is sent once the
// one before it is acked. docs/design/parking.md, "Beside the stream".
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <outbox/sink.hpp>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "relay/delivery_core.hpp"
#include "relay/key_gate.hpp"
#include "relay/sink_state.hpp"
#include "store/parked.hpp"

namespace outbox::relay {

struct RetryOptions {
  std::int32_t subscription{0};
  std::int64_t generation{0};
  ParkingRules rules;
  bool gapless{true};
  std::size_t max_batch{100};
  std::chrono::nanoseconds write_interval{std::chrono::milliseconds(50)};
  Token first_token{1};
  std::optional<EventId> worker{};  ///< The worker at which slow events become `running`.
  std::chrono::nanoseconds slow_after{0};
  Token token_prefix{0};  ///< Added to each token that the sink gets.
  /// Adds the keys of which the stream has events in flight, or will send events whatever happens.
  std::function<void(std::unordered_set<std::uint64_t>& keys)> keys_in_flight{};
  /// How often the core asks whether runs at other workers have ended.
  std::chrono::nanoseconds look_at_runs{std::chrono::seconds(1)};
  SendMeter* meter{nullptr};  ///< What is told of sends. May be null; else it outlives the core.
};

class RetryCore {
 public:
  using Send = DeliveryCore::Send;

  /// `sink` and `gate` are those of the subscription, and outlive the core.
  RetryCore(RetryOptions options, SinkState& sink, KeyGate& gate);

  // ---- what happened

  /// A parked event may be due at this time.
  void due_at(TimePoint when);
  /// The row with this seq was `running` when the core began, or is `ready`. `key` is that of
  /// store::parked_key().
  void runs(std::int64_t seq, std::uint64_t key) {
    if (options_.worker) runs_.emplace(seq, key);
  }
  /// The answer to wants_load().
  void loaded(store::DueEvents due, TimePoint now);
  void outcome(const Outcome& outcome, TimePoint now);
  /// The sink looks after this send, which was set aside, from now on; its row becomes `running`.
  void kept(const LateSends::Send& send, TimePoint now);
  /// The last results() are written, and the gate has been told which keys have nothing to do any
  /// more.
  void written(TimePoint now);
  /// A person has changed parked events: what is not in flight is read again.
  void changed(TimePoint now);
  void stop_requested() { stopping_ = true; }
  /// An earlier run of this subscription delivered the event, but could not write that, or did not
  /// hear that it was written. If its row is still there, the event is not sent again. It is
  /// remembered until everything that is due was read. A corrected copy has another id.
  void remember(const EventRef& event) {
    remembered_.insert(event);
    if (!due_) due_ = TimePoint::min();
  }

  // ---- what to do

  /// Whether the events that are due should be read, with the events that wait behind them. If so,
  /// call load_asked(), and loaded() with the answer.
  [[nodiscard]] bool wants_load(TimePoint now) const;
  void load_asked();
  /// After load_asked(): rows whose state should be read, too, because they were left to workers or
  /// are remembered.
  [[nodiscard]] const std::vector<store::AskedRow>& asked() const { return asked_; }
  /// The next events to hand over. Hand over a prefix, then call handed_over() with its length. The
  /// pointers are valid until the events have their outcomes.
  [[nodiscard]] std::span<const Send> to_send(TimePoint now);
  void handed_over(std::size_t count);
  /// The first event of to_send() has failed and is not handed over.
  void refuse(const Error& error, TimePoint now);
  /// What is to be written now. Empty while the last results are being written.
  [[nodiscard]] std::vector<store::RetryResult> results(TimePoint now);
  /// When wants_load(), to_send() or results() will have something to do.
  [[nodiscard]] std::optional<TimePoint> next_at() const;

  // ---- how it stands

  /// Whether the results of all events that were sent are written.
  [[nodiscard]] bool is_written() const { return results_.empty() && writing_.empty(); }
  /// Whether nothing is due and nothing is being sent, read or written.
  [[nodiscard]] bool is_quiet(TimePoint now) const {
    return is_written() && chains_.empty() && !loading_ && !(due_ && *due_ <= now);
  }
  /// Whether the core is stopping, nothing is in flight, and all results are written.
  [[nodiscard]] bool finished() const;
  [[nodiscard]] Token next_token() const { return next_token_; }
  /// The events that are acked and whose end is not written, for remember() after the store was
  /// lost; also slow events whose row may not exist yet.
  [[nodiscard]] std::vector<EventRef> unsettled_acks() const;

 private:
  /// Events of one key, in the order of seq.
  struct Chain {
    std::uint64_t key{0};
    std::vector<store::ParkedRow> rows;
    std::shared_ptr<const void> storage;
    std::size_t at{0};  ///< The event that is sent next or is in flight.
    bool in_flight{false};
    bool alone{false};  ///< Whether the event was sent alone.
    TimePoint sent_at{};
    bool in_doubt{false};  ///< It failed, and it is not known yet whose fault that is.
    /// A person has sent the event again, so the stream may have later events of its key in flight.
    bool waits_for_stream{false};
    int tries{0};  ///< Failures that were not counted as attempts.
    Doubt doubt{};
    Error error{};
    TimePoint again_at{};  ///< The event is not sent before this time.

    [[nodiscard]] const store::ParkedRow& row() const { return rows[at]; }
    [[nodiscard]] bool may_go(TimePoint now) const {
      return !in_flight && !in_doubt && !waits_for_stream && at < rows.size() && now >= again_at;
    }
  };
  using Chains = std::map<Token, Chain>;
  /// A result, and what it means for its key.
  struct Ended {
    std::uint64_t key{0};  ///< The key in the gate.
    bool leaves{false};    ///< The event was delivered, or is dead.
    std::optional<EventRef> acked{};
    std::int64_t began_to_run{0};  ///< The row with this seq is `running` now.
  };
  /// Keys of store::parked_key(), as everywhere in this class.
  using Keys = std::unordered_set<std::uint64_t>;
  /// What a result concerns: an event, and its key as it was read.
  struct Subject {
    EventRef event;
    std::uint64_t key{0};
    std::int64_t version{0};
    std::size_t attempts{0};  ///< Attempts before this one.
  };

  [[nodiscard]] bool may_load() const;
  [[nodiscard]] Keys busy() const;
  void add_keys_set_aside(Keys& keys) const;
  [[nodiscard]] bool is_suspect(const Chain& chain) const {
    return suspects_.contains(chain.row().event.seq);
  }
  [[nodiscard]] bool& suspect_of(const Chain& chain);
  void in_doubt(Chain& chain, const Outcome& outcome, TimePoint now);
  void judge(TimePoint now);
  [[nodiscard]] bool pick_suspect(TimePoint now);
  void take_late(TimePoint now);
  void watch_slow(TimePoint now);
  void give_run(const LateSends::Send& send, const std::string& error, TimePoint now);
  void compare_asked(const std::vector<store::AskedState>& rows, TimePoint now);
  void look_at_stream();
  [[nodiscard]] static Subject subject_of(const Chain& chain);
  [[nodiscard]] static Subject subject_of(const LateSends::Send& send);
  void give(store::RetryResult result, const Subject& subject, TimePoint now);
  void give_delivered(const Subject& subject, TimePoint now);
  void give_failed(const Subject& subject, const Outcome& outcome, TimePoint now);
  void go_to_next(Chains::iterator chain, TimePoint now);
  void recall(Chain& chain, TimePoint now);
  void failed(Chain& chain, const Outcome& outcome, TimePoint now);
  void drop_done_chains(TimePoint now);

  const RetryOptions options_;
  SinkState& sink_;
  KeyGate& gate_;

  Chains chains_;  ///< By the token of the event that is sent next or is in flight.
  std::vector<std::weak_ptr<const void>> storages_;
  /// Events that failed with `unknown` or `retry`, and are sent alone from then on. The value is
  /// false for an event of a gapless sink that has only failed beside others.
  std::map<std::int64_t, bool> suspects_;
  Keys given_;  ///< Keys of results that were given since rows were last asked for.
  std::set<EventRef> remembered_;
  std::vector<Send> batch_;
  Token next_token_;
  TimePoint now_{};  ///< The time of the last to_send().

  /// The keys of rows that are `running`, here or at another worker, by seq. These events leave
  /// without a result of this core.
  std::map<std::int64_t, std::uint64_t> runs_;
  std::vector<store::AskedRow> asked_;
  std::map<Token, std::int64_t> late_;  ///< The seq of each send of this core that was set aside.

  bool loading_{false};
  bool changed_while_loading_{false};
  bool stopping_{false};
  std::optional<TimePoint> due_;
  std::vector<store::RetryResult> results_;
  std::vector<Ended> ended_;
  std::vector<Ended> writing_;
  std::optional<TimePoint> oldest_result_;
};

}  // namespace outbox::relay
