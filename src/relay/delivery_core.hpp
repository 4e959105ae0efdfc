// The decisions of one subscription on one strand: what to send next, what may be settled, when to pause. Pure: no clock,
// socket, thread or log; time comes in as a parameter, actions go out as values. tests/unit/relay steps it, tests/sim
// drives it with crashes, and subscription_loop.cpp is the thin loop around it. The argument is in docs/design/relay.md.
//
// Order per key (P4) stands on two rules, both here:
//   - the gate: no event of a key is handed to the sink after an earlier one of that key failed or is in doubt. For a
//     gapless sink the sink itself stops at its first failure; for all others one event per key is in flight.
//   - after any failure nothing is sent until everything in flight has its outcome; what is not acked is then sent again
//     from the earliest on.
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

#include "base/backoff.hpp"
#include "store/cursor.hpp"
#include "store/store.hpp"

namespace outbox::relay {

using TimePoint = std::chrono::steady_clock::time_point;

struct CoreOptions {
  bool gapless{true};
  std::size_t max_batch{1000};
  std::size_t max_in_flight{10000};
  std::size_t window_events{10000};
  std::size_t window_bytes{std::size_t{16} << 20U};
  /// The next page is read once the window has so much room, or is empty.
  std::size_t page_events{1000};
  std::size_t page_bytes{std::size_t{4} << 20U};
  std::chrono::nanoseconds settle_interval{std::chrono::milliseconds(50)};
  std::size_t settle_events{1000};
  BackoffPolicy backoff{};
  std::uint64_t seed{0};
  Token first_token{1};  ///< A sink that served before must not see a token again.
};

enum class Mode : std::uint8_t {
  delivering,   ///< Sends while there is work.
  draining,     ///< A send failed: waits for the outcomes of all that is in flight.
  backing_off,  ///< Nothing in flight; waits for the end of the pause.
  reopening,    ///< The pause is over: the sink must be opened.
  rejected,     ///< An event was rejected: nothing more is sent until a person acts.
  stopping,     ///< Asked to stop: waits for what is in flight, settles.
};
[[nodiscard]] const char* to_string(Mode mode) noexcept;

/// One event of the log. Ids alone may repeat: the caller may supply them.
struct EventRef {
  std::int64_t seq{0};
  EventId id{};

  auto operator<=>(const EventRef&) const = default;  // NOLINT(modernize-use-nullptr): its own
};

/// The event that stopped the subscription.
struct Rejection {
  std::int64_t seq{0};
  EventId id{};
  Error error;
};

class DeliveryCore {
 public:
  DeliveryCore(CoreOptions options, store::Cursor start);

  // ---- what happened

  /// A page of the log, in order. `wanted[i]` says whether the filter matches event i; empty: all do.
  void page_read(std::shared_ptr<const store::Page> page, std::span<const std::uint8_t> wanted,
                 TimePoint now);
  void outcome(const Outcome& outcome, TimePoint now);
  /// The sink was opened, or could not be.
  void opened(const Status& status, TimePoint now);
  /// The rows of the last settle() are written.
  void settled();
  /// Sends nothing new any more. With `fill_gaps`, what lies before something that is acked or in flight still goes, so
  /// that it can be settled and need not be repeated.
  void stop_asked(bool fill_gaps);
  /// An event that an earlier run of this subscription already delivered (it was acked, the settlement was lost with the
  /// connection): when it comes again it is not sent again. Kept until it was read, or cannot come any more.
  void remember(const EventRef& event);

  // ---- what to do

  struct Send {
    Token token{0};
    const EventView* event{nullptr};
  };
  /// The next events to hand over, at most one batch. Hand over a prefix, then call handed_over(n). The pointers stay
  /// valid until the event is settled.
  [[nodiscard]] std::span<const Send> to_send();
  void handed_over(std::size_t count, TimePoint now);
  /// Rows of progress that are due now; none while the last ones are being written. At most three.
  [[nodiscard]] std::vector<store::Settlement> settle(TimePoint now);
  /// The sink must be opened now.
  [[nodiscard]] bool wants_open(TimePoint now);
  /// When to look again if nothing happens before.
  [[nodiscard]] std::optional<TimePoint> wake_at() const;

  // ---- how it stands

  [[nodiscard]] Mode mode() const { return mode_; }
  [[nodiscard]] const std::optional<Rejection>& rejection() const { return rejection_; }
  [[nodiscard]] const Error& last_failure() const { return last_failure_; }
  [[nodiscard]] int failures() const { return failures_; }
  /// The end of the pause after the newest failure.
  [[nodiscard]] const std::optional<TimePoint>& pause_until() const { return pause_until_; }
  /// Fetched but not settled.
  [[nodiscard]] std::size_t window_events() const { return window_events_; }
  [[nodiscard]] std::size_t window_bytes() const { return window_bytes_; }
  [[nodiscard]] std::size_t in_flight() const { return in_flight_; }
  /// Stopping, nothing in flight, everything that was acked is settled.
  [[nodiscard]] bool finished() const;
  /// Everything read was acked or filtered, and settled.
  [[nodiscard]] bool idle() const;
  [[nodiscard]] std::uint64_t acked() const { return acked_; }
  [[nodiscard]] std::uint64_t filtered() const { return filtered_; }
  /// Something is remembered that may still come: a page that shows there is nothing more must be told, even an empty one.
  [[nodiscard]] bool remembers() const { return !remembered_.empty(); }
  /// What is acked but not yet in a written settlement, for remember() after the store was lost.
  [[nodiscard]] std::vector<EventRef> unsettled_acks() const;
  /// Greater than every token so far.
  [[nodiscard]] Token next_token() const { return end(); }
  /// The place up to which everything is done (settled or about to be).
  [[nodiscard]] const store::Cursor& done() const { return done_; }

 private:
  enum class State : std::uint8_t { ready, waiting, in_flight, acked, filtered };
  struct Slot {
    const EventView* event{nullptr};
    std::uint64_t key{0};
    Token next_of_key{0};  ///< The following event of the key in the window; 0: none.
    State state{State::ready};
  };
  struct HeldPage {
    std::shared_ptr<const store::Page> page;
    Token end{0};
  };
  struct KeyChain {
    Token last{0};
  };

  [[nodiscard]] Slot& slot(Token token) { return slots_[static_cast<std::size_t>(token - base_)]; }
  [[nodiscard]] const Slot& slot(Token token) const {
    return slots_[static_cast<std::size_t>(token - base_)];
  }
  [[nodiscard]] Token end() const { return base_ + slots_.size(); }
  [[nodiscard]] bool may_send() const;
  [[nodiscard]] bool filling_gaps() const {
    return mode_ == Mode::stopping && head_ < stop_before_;
  }

  [[nodiscard]] bool recall(const EventView& event);
  void chain(Slot& added, Token token);
  void queue(Token token);
  void release_key(const Slot& done);
  void fail(const Outcome& outcome, TimePoint now);
  void enter_pause(TimePoint now);
  void rewind();
  void advance(TimePoint now);
  void finish_page(const store::Page& page);
  void cover(const std::shared_ptr<const store::Pair>& pair, std::optional<std::int64_t> position);
  void bridge(const store::Pair& pair);
  void merge_whole_rows();
  [[nodiscard]] std::chrono::nanoseconds settle_pause() const;
  [[nodiscard]] bool window_waits() const;
  store::Settlement& row_of(const store::Pair& pair);

  const CoreOptions options_;

  Mode mode_{Mode::reopening};
  std::optional<TimePoint> pause_until_;
  std::optional<Duration> wished_pause_;
  std::optional<Rejection> rejection_;
  Error last_failure_;
  int failures_{0};
  bool stop_asked_{false};
  Token stop_before_{0};  ///< Stopping: what comes before it still goes.

  // The window: slots_[0] has token base_. head_ is the first event that is not done, next_ the next one to look at.
  std::deque<Slot> slots_;
  std::deque<HeldPage> pages_;
  Token base_;
  Token head_;
  Token next_;
  std::size_t in_flight_{0};
  std::size_t window_events_{0};
  std::size_t window_bytes_{0};

  // The gate, for sinks that are not gapless.
  std::unordered_map<std::uint64_t, KeyChain> keys_;
  std::deque<Token> ready_;
  std::vector<Send> batch_;

  // Progress: done_ is where the contiguous prefix ends; rows_ lead there from what is settled or being written.
  store::Cursor done_;
  store::Cursor read_;  ///< Where the last page ended.
  std::vector<store::Settlement> rows_;
  std::vector<EventRef> acks_open_;     ///< Covered by rows_.
  std::vector<EventRef> acks_writing_;  ///< Covered by the rows being written.
  std::set<EventRef> remembered_;       ///< Not read yet.
  bool begins_pairs_{
      false};  ///< A pair was read from its beginning, not only the rest of a begun one.
  std::size_t done_since_settle_{0};
  std::size_t settling_events_{0};
  std::size_t settling_bytes_{0};
  std::size_t open_events_{0};
  std::size_t open_bytes_{0};
  std::optional<TimePoint> oldest_done_;
  bool settling_{false};
  std::uint64_t acked_{0};
  std::uint64_t filtered_{0};
};

}  // namespace outbox::relay
