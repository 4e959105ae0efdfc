// The decisions of one strand of a subscription: what to send next, what may be settled. Pure: no clock, socket, thread or log;
// time is a parameter, actions are return values. tests/unit/relay steps it, tests/sim drives it with crashes, and
// subscription_loop.cpp is the thin loop around it. docs/design/relay.md has the proof.
//
// Order per key (P4) follows from two rules:
//   - the gate: no event of a key is handed to the sink after an earlier one of that key failed or is in doubt. A gapless
//     sink itself stops at its first failure; for all others one event per key is in flight.
//   - after any failure nothing is sent until everything in flight has its outcome (SinkState); then everything that is not acked
//     is sent again, starting with the earliest.
// No loss (P2): the cursor moves over an event only once it is acked or filtered, contiguously in the order of the log.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <outbox/sink.hpp>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "relay/sink_state.hpp"
#include "relay/window.hpp"
#include "store/log_reader.hpp"
#include "store/settlement.hpp"

namespace outbox::relay {

struct CoreOptions {
  /// Subscription, lanes, generation and config version: each settlement starts as a copy of this one.
  store::Settlement row{};
  bool gapless{true};
  std::size_t max_batch{1000};
  std::size_t max_in_flight{10000};
  std::chrono::nanoseconds settle_interval{std::chrono::milliseconds(50)};
  std::size_t settle_events{1000};
  Token first_token{1};  ///< A sink that was used before must not see a token twice.
};

/// One event of the log. Ids alone may repeat: the caller may supply them.
struct EventRef {
  std::int64_t seq{0};
  EventId id{};

  auto operator<=>(const EventRef&) const = default;  // NOLINT(modernize-use-nullptr): its own
};

class DeliveryCore {
 public:
  /// `sink` and `window` are those of the subscription, and outlive the core.
  DeliveryCore(CoreOptions options, store::Cursor start, SinkState& sink, Window& window);

  // ---- input

  /// A page of the log, in order, already counted in the window. `wanted[i]`: the filter matches event i; empty: all match.
  void page_read(std::shared_ptr<const store::Page> page, std::span<const std::uint8_t> wanted,
                 TimePoint now);
  void outcome(const Outcome& outcome, TimePoint now);
  /// The rows of the last settle() were written.
  void settled();
  /// Call together with SinkState::stop_requested().
  void stop_requested();
  /// An event that an earlier run of this subscription delivered (it was acked, the settlement was lost with the connection): it is
  /// not sent again. Kept until it is read, or certain not to be.
  void remember(const EventRef& event) { remembered_.insert(event); }

  // ---- decisions

  struct Send {
    Token token{0};
    const EventView* event{nullptr};
  };
  /// The next events to hand over, at most one batch. Hand over a prefix of n, then call handed_over(n). The pointers are
  /// valid until the event is settled.
  [[nodiscard]] std::span<const Send> to_send();
  void handed_over(std::size_t count);
  /// The settlements that are due now, at most three; none while the last ones are being written.
  [[nodiscard]] std::vector<store::Settlement> settle(TimePoint now);
  /// When settle() will have something to write.
  [[nodiscard]] std::optional<TimePoint> settle_at() const;

  // ---- state

  /// Stopping, nothing is in flight, and everything acked is settled.
  [[nodiscard]] bool finished() const;
  /// Everything read is acked or filtered, and settled.
  [[nodiscard]] bool idle() const { return pages_.empty() && rows_.empty() && !settling_; }
  [[nodiscard]] std::uint64_t acked() const { return acked_; }
  [[nodiscard]] std::uint64_t filtered() const { return filtered_; }
  /// Some remembered events were not read yet: the page at the end of the log is needed, even if it is empty.
  [[nodiscard]] bool remembers() const { return !remembered_.empty(); }
  /// What is acked and not in a written settlement, for remember() after the store was lost.
  [[nodiscard]] std::vector<EventRef> unsettled_acks() const;
  /// Greater than every token in use so far.
  [[nodiscard]] Token next_token() const { return end(); }
  /// Everything before it is acked or filtered.
  [[nodiscard]] const store::Cursor& done() const { return done_; }

 private:
  enum class State : std::uint8_t { ready, waiting, in_flight, acked, filtered };
  struct Slot {
    const EventView* event{nullptr};
    std::uint64_t key{0};
    Token next_of_key{0};  ///< The following event of the key in the window; 0: none.
    State state{State::ready};

    [[nodiscard]] bool is_done() const { return state == State::acked || state == State::filtered; }
  };
  struct HeldPage {
    std::shared_ptr<const store::Page> page;
    Token end{0};
  };

  [[nodiscard]] Slot& slot(Token token) { return slots_[static_cast<std::size_t>(token - base_)]; }
  [[nodiscard]] const Slot& slot(Token token) const {
    return slots_[static_cast<std::size_t>(token - base_)];
  }
  [[nodiscard]] Token end() const { return base_ + slots_.size(); }
  [[nodiscard]] bool stopping() const { return sink_.mode() == Mode::stopping; }
  [[nodiscard]] bool filling_gaps() const { return sink_.may_fill_gaps() && head_ < stop_before_; }

  [[nodiscard]] bool recall(const EventView& event);
  void chain(Slot& added, Token token);
  void queue(Token token);
  void release_key(const Slot& done);
  void rewind();
  void advance(TimePoint now);
  void count(store::Settlement& row, const Slot& done);
  void drop_front_page();
  void bridge(const store::Pair& pair);
  void merge_whole_rows();
  [[nodiscard]] std::chrono::nanoseconds settle_pause() const;
  [[nodiscard]] bool window_waits() const;
  store::Settlement& row_of(const store::Pair& pair);

  const CoreOptions options_;
  SinkState& sink_;
  Window& window_;
  Token stop_before_{0};  ///< When stopping: events before it are still sent.

  // Events of pages that are not done: slots_[0] has token base_. head_ is the first event that is not done, next_ the next one to
  // consider for sending.
  std::deque<Slot> slots_;
  std::deque<HeldPage> pages_;
  Token base_;
  Token head_;
  Token next_;
  std::uint64_t openings_{0};  ///< Of the sink, when the last events were sent.

  // The gate, for sinks that are not gapless.
  std::unordered_map<std::uint64_t, Token> last_of_key_;
  std::deque<Token> ready_;
  std::vector<Send> batch_;

  // Progress: done_ is where the contiguous prefix ends; rows_ cover what lies between it and what is settled or being written.
  store::Cursor done_;
  store::Cursor read_;  ///< Where the last page ended.
  std::vector<store::Settlement> rows_;
  std::vector<EventRef> acks_open_;     ///< Covered by rows_.
  std::vector<EventRef> acks_writing_;  ///< Covered by the rows being written.
  std::set<EventRef> remembered_;       ///< Not read yet.
  /// A pair was read from its beginning, not only the rest of one that was begun before.
  bool begins_pairs_{false};
  std::size_t settling_events_{0};
  std::size_t settling_bytes_{0};
  std::size_t open_events_{0};  ///< Done, and not returned by settle() yet.
  std::size_t open_bytes_{0};
  std::optional<TimePoint> oldest_done_;
  bool settling_{false};
  std::uint64_t acked_{0};
  std::uint64_t filtered_{0};
};

}  // namespace outbox::relay
