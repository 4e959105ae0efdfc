// Decides for one strand of a subscription what is sent next and what may be settled. Pure: it has
// no clock, socket, thread or log; time is a parameter, and actions are return values.
// tests/unit/relay steps it, tests/sim drives it with crashes, and loop_core.cpp passes
// pages and outcomes to it. docs/design/relay.md has the proof.
//
// Order per key (P4) follows from two rules:
//   - the gate: no event of a key is handed to the sink after an earlier one of that key failed or
//     is in doubt. A gapless sink itself stops at its first failure; for all others one event per
//     key is in flight.
//   - after any failure nothing is sent until everything in flight has its outcome (SinkState);
//     then everything that is not acked is sent again, starting with the earliest. (A rejected
//     event is set aside instead: docs/design/parking.md.)
// No loss (P2): the cursor moves over an event only once it is acked, filtered or parked,
// contiguously in the order of the log. What is parked is written with the settlement that passes
// it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
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

#include "relay/failing_events.hpp"
#include "relay/key_gate.hpp"
#include "relay/send_meter.hpp"
#include "relay/sink_state.hpp"
#include "relay/slow_watch.hpp"
#include "relay/window.hpp"
#include "store/delivery.hpp"
#include "store/parked.hpp"
#include "store/settlement.hpp"
#include "subscription/retry_policy.hpp"

namespace outbox::relay {

/// What becomes of an event that is rejected, slow, or fails while others succeed.
struct ParkingRules {
  subscription::RetryPolicy policy;
  std::size_t max_waiting{100000};
  /// How many events one settlement parks, since on SQLite all writers wait for its transaction.
  std::size_t max_at_once{500};
  /// Whether events that take long are set aside.
  bool watches_slow{true};
  std::chrono::nanoseconds slow_after{std::chrono::seconds(1)};
  /// Whether events of this type are known to take long. Such events are set aside at the next
  /// check. The function may be empty.
  std::function<bool(std::string_view event_type)> is_slow{};
  /// The pauses between attempts at an event that fails while others succeed, before it is parked.
  BackoffPolicy failing{.first = std::chrono::milliseconds(100),
                        .longest = std::chrono::seconds(1)};
};

struct CoreOptions {
  /// Subscription, lanes, generation and config version: each settlement starts as a copy of this
  /// one.
  store::Settlement row{};
  bool gapless{true};
  bool independent{false};
  std::optional<EventId> worker{};  ///< The worker at which slow events become `running`.
  Token token_prefix{0};            ///< Added to each token that the sink gets.
  std::size_t max_batch{1000};
  std::size_t max_in_flight{10000};
  std::chrono::nanoseconds settle_interval{std::chrono::milliseconds(50)};
  /// The settle interval for pages of which nothing is wanted. After a crash these are only read
  /// again.
  std::chrono::nanoseconds passed_interval{0};
  std::size_t settle_events{1000};
  Token first_token{1};       ///< A sink that was used before must not see a token twice.
  SendMeter* meter{nullptr};  ///< What is told of sends. May be null; else it outlives the core.
  bool counts_latency{true};  ///< Whether the time from created_at to the ack counts.
  /// If this is not set, a rejected event stops the subscription.
  std::optional<ParkingRules> parking{};
};

/// One event of the log. Ids alone may repeat: the caller may supply them.
struct EventRef {
  std::int64_t seq{0};
  EventId id{};

  auto operator<=>(const EventRef&) const = default;  // NOLINT(modernize-use-nullptr): its own
};

class DeliveryCore {
 public:
  /// `sink`, `window` and `gate` are those of the subscription, and outlive the core.
  DeliveryCore(CoreOptions options, store::Cursor start, SinkState& sink, Window& window,
               KeyGate& gate);

  // ---- input

  /// A page of the log, in order, which is counted in the window already. `wanted[i]` says whether
  /// the filter matches event i; an empty `wanted` means that all match.
  void page_read(std::shared_ptr<const store::Page> page, std::span<const std::uint8_t> wanted,
                 TimePoint now);
  void outcome(const Outcome& outcome, TimePoint now);
  /// The rows of the last settle() were written.
  void settled();
  /// The sink looks after this send, which was set aside, from now on.
  void kept(Token token) { late_.erase(token); }
  /// Call together with SinkState::stop_requested().
  void stop_requested(TimePoint now);
  /// An earlier run of this subscription delivered the event, but the settlement was lost with the
  /// connection: the event is not sent again. It is remembered until it is read, or certain not to
  /// be.
  void remember(const EventRef& event) { remembered_.insert(event); }

  // ---- decisions

  struct Send {
    Token token{0};
    const EventView* event{nullptr};
    std::size_t attempt{1};
  };
  /// The next events to hand over, at most one batch. Hand over a prefix, then call handed_over()
  /// with its length. The pointers are valid until the events are settled.
  [[nodiscard]] std::span<const Send> to_send(TimePoint now);
  void handed_over(std::size_t count);
  /// One of these events was not given to the sink after all, since the sink refused an earlier
  /// event of the same key.
  void kept_back(Token token, TimePoint now);
  /// Parks the first event of to_send() after so many attempts, instead of handing it over. Nothing
  /// may be in flight.
  void refuse(std::size_t attempts, const Error& error, TimePoint now);
  /// What is written in one transaction.
  struct Due {
    std::vector<store::Settlement> rows;  ///< At most three.
    std::vector<store::ParkedEvent> parked;

    [[nodiscard]] bool empty() const { return rows.empty(); }
  };
  /// The progress that is due now. Empty while the last is being written.
  [[nodiscard]] Due settle(TimePoint now);
  /// When to_send() may have something that it does not have now.
  [[nodiscard]] std::optional<TimePoint> send_at() const;
  /// When settle() will have something to write.
  [[nodiscard]] std::optional<TimePoint> settle_at() const;

  // ---- state

  /// Whether the core is stopping, nothing is in flight, and everything acked is settled.
  [[nodiscard]] bool finished() const;
  /// Whether everything that was read is acked, filtered or parked, and settled.
  [[nodiscard]] bool idle() const { return pages_.empty() && rows_.empty() && !settling_; }
  /// Whether a page has ended behind everything that an earlier run may have read.
  [[nodiscard]] bool saw_end() const { return saw_end_; }
  /// Whether everything that the cursor has passed is settled.
  [[nodiscard]] bool is_written() const { return open_events_ == 0 && settling_events_ == 0; }
  [[nodiscard]] std::uint64_t acked() const { return acked_; }
  [[nodiscard]] std::uint64_t filtered() const { return filtered_; }
  [[nodiscard]] std::uint64_t parked() const { return parked_; }
  /// How many of the parked events are slow.
  [[nodiscard]] std::uint64_t slow() const { return slow_; }
  /// Whether some remembered events were not read yet. Then the page at the end of the log is
  /// needed, even if it is empty.
  [[nodiscard]] bool remembers() const { return !remembered_.empty(); }
  /// The events that are acked and not in a written settlement, for remember() after the store was
  /// lost.
  [[nodiscard]] std::vector<EventRef> unsettled_acks() const;
  /// Adds the keys of events that are in flight, or will be sent whatever is parked.
  void add_keys_in_flight(std::unordered_set<std::uint64_t>& keys) const;
  /// Greater than every token in use so far.
  [[nodiscard]] Token next_token() const { return end(); }
  /// The cursor before which everything is acked, filtered or parked.
  [[nodiscard]] const store::Cursor& done() const { return done_; }

 private:
  enum class State : std::uint8_t {
    ready,
    waiting,  ///< It waits behind an event of its key, because the sink is not gapless.
    in_flight,
    held,     ///< It was rejected, and it is not known yet whose fault that is.
    failing,  ///< It failed while others succeed, and is sent again alone.
    acked,
    filtered,
    parked,
  };
  struct Slot {
    const EventView* event{nullptr};
    std::uint64_t key{0};
    Token next_of_key{0};      ///< The next event of the key in the window; 0 if there is none.
    std::uint32_t sent_ms{0};  ///< When it was sent, in milliseconds modulo 2^32.
    State state{State::ready};

    [[nodiscard]] bool is_done() const { return state >= State::acked; }
  };
  struct HeldPage {
    std::shared_ptr<const store::Page> page;
    Token end{0};
    TimePoint read_at{};
  };

  [[nodiscard]] Slot& slot(Token token) { return slots_[static_cast<std::size_t>(token - base_)]; }
  [[nodiscard]] const Slot& slot(Token token) const {
    return slots_[static_cast<std::size_t>(token - base_)];
  }
  [[nodiscard]] Token end() const { return base_ + slots_.size(); }
  [[nodiscard]] bool stopping() const { return sink_.mode() == Mode::stopping; }
  [[nodiscard]] bool filling_gaps() const { return sink_.may_fill_gaps() && head_ < stop_before_; }

  void pass_page(const store::Page& page, TimePoint now);
  [[nodiscard]] bool recall(const EventView& event);
  [[nodiscard]] std::uint64_t key_of(Slot& slot) const;
  void chain(Slot& added, Token token);
  void queue(Token token);
  void release_key(const Slot& done);
  void rewind();
  void fill_batch(std::size_t limit);
  [[nodiscard]] bool may_pass(Token token);
  [[nodiscard]] bool precedes_refused(std::uint64_t key, Token token) const;
  [[nodiscard]] bool is_full() const;
  [[nodiscard]] Token send_before() const;
  void hold(Token token, const Outcome& outcome, TimePoint now);
  void set_aside_failed(const Outcome& outcome, TimePoint now);
  void refused(const Outcome& outcome, TimePoint now);
  void wait_behind(std::uint64_t key, Token token);
  void failed(Token token, const Outcome& outcome, TimePoint now);
  void judge_failing(TimePoint now);
  [[nodiscard]] bool pick_failing(TimePoint now, bool at_last);
  [[nodiscard]] std::size_t batch_limit() const;
  void choose(std::size_t limit, TimePoint now);
  void keep_time(TimePoint now);
  [[nodiscard]] static std::uint32_t in_ms(TimePoint time) {
    return static_cast<std::uint32_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count());
  }
  [[nodiscard]] bool watches() const {
    return options_.parking && options_.parking->watches_slow && !options_.gapless &&
           (!stopping() || options_.worker);
  }
  void watch_slow(TimePoint now);
  [[nodiscard]] std::vector<Token> slow_events() const;
  [[nodiscard]] std::size_t keys_in_window();
  [[nodiscard]] std::optional<std::chrono::milliseconds> age(Token token) const;
  [[nodiscard]] bool is_old(Token token) const;
  void set_aside(Token token);
  [[nodiscard]] bool late_outcome(const Outcome& outcome, TimePoint now);
  void park_held(TimePoint now);
  void park_failed(Token token, const Outcome& outcome, ParkReason reason,
                   std::size_t attempts_before = 0);
  void park_followers(Slot& first);
  void park(Token token, store::ParkedEvent event);
  void park_waiting(Token token);
  void advance(TimePoint now);
  void count(store::Settlement& row, Token token);
  void drop_front_page();
  void bridge(const store::Pair& pair);
  void merge_whole_rows();
  [[nodiscard]] std::chrono::nanoseconds settle_pause() const;
  [[nodiscard]] bool window_waits() const;
  /// Whether no more events may be parked in the next settlement.
  [[nodiscard]] bool is_cut() const {
    return options_.parking && parked_open_.size() >= options_.parking->max_at_once;
  }
  store::Settlement& find_settlement(const store::Pair& pair);

  const CoreOptions options_;
  SinkState& sink_;
  Window& window_;
  KeyGate& gate_;
  Token stop_before_{0};  ///< When the core stops, events before this token are still sent.

  // The events of pages that are not done; slots_[0] has the token base_. head_ is the first event
  // that is not done, and next_ is the next event to consider for sending.
  std::deque<Slot> slots_;
  std::deque<HeldPage> pages_;
  Token base_;
  Token head_;
  Token next_;
  std::uint64_t openings_{0};  ///< The openings of the sink when the last events were sent.

  // The gate, for sinks that are not gapless.
  std::unordered_map<std::uint64_t, Token> last_of_key_;
  std::deque<Token> ready_;
  std::vector<Send> batch_;

  // Rejected events are held until another event is acked or nothing else is left to send, and are
  // then parked. If the destination is suspected first, they are sent again instead.
  std::map<Token, Outcome> held_;
  std::uint64_t held_since_{0};  ///< How many events the sink had acked when the first was held.
  std::uint64_t suspicions_{0};  ///< The suspicions of the sink when the last events were sent.
  FailingEvents failing_;
  bool batch_alone_{false};  ///< Whether the batch is one event that is sent alone.
  std::optional<Token> sent_alone_;
  SlowWatch slow_watch_;
  TimePoint now_{};  ///< The time of the last to_send().
  std::uint32_t now_ms_{0};
  std::unordered_map<Token, EventRef> late_;  ///< Events that were set aside while they are sent.
  std::vector<std::int64_t> late_writing_;
  std::size_t done_ahead_{0};  ///< How many events behind the first unfinished one are done.
  std::uint64_t slow_{0};
  /// Parked events that the cursor has not passed yet.
  std::map<Token, store::ParkedEvent> parked_ahead_;
  /// The first event of each key that a gapless sink refused and the cursor has not passed. Earlier
  /// events of the key may still be sent.
  std::unordered_map<std::uint64_t, Token> refused_;
  std::vector<store::ParkedEvent> parked_open_;  ///< Parked events that rows_ count.
  /// A parked event that is being written.
  struct Parked {
    std::uint64_t key{0};  ///< Its key in the gate.
    bool live{false};
  };
  std::vector<Parked> parked_writing_;

  // done_ is where the contiguous prefix ends. rows_ cover what lies between what is settled or
  // being written and done_.
  store::Cursor done_;
  store::Cursor read_;  ///< Where the last page ended.
  std::vector<store::Settlement> rows_;
  std::vector<EventRef> acks_open_;     ///< Acked events that rows_ cover.
  std::vector<EventRef> acks_writing_;  ///< Acked events that the rows being written cover.
  std::set<EventRef> remembered_;       ///< Remembered events that were not read yet.
  /// Whether a pair was read from its beginning, and not only the rest of a pair that was begun
  /// before.
  bool begins_pairs_{false};
  bool saw_end_{false};
  std::size_t settling_events_{0};
  std::size_t settling_bytes_{0};
  // When the pages were read that are done and not settled, and those that are being settled.
  std::vector<TimePoint> read_open_;
  std::vector<TimePoint> read_writing_;
  std::size_t open_events_{0};  ///< How many events are done that settle() has not returned yet.
  std::size_t open_bytes_{0};
  std::optional<TimePoint> oldest_done_;
  bool settling_{false};
  std::uint64_t acked_{0};
  std::uint64_t filtered_{0};
  std::uint64_t parked_{0};
};

}  // namespace outbox::relay
