// Whether events may be sent to a subscription's sink. The sink fails, drains, pauses and is opened
// again as a whole, for all strands. It is pure, like the delivery cores that share it. The table
// of modes is in docs/design/relay.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <outbox/sink.hpp>

#include "base/backoff.hpp"
#include "relay/doubt.hpp"
#include "relay/trust_deadline.hpp"

namespace outbox::relay {

enum class Mode : std::uint8_t {
  delivering,   ///< Events are sent while there are any.
  draining,     ///< A send has failed, and everything in flight gets its outcome first.
  backing_off,  ///< Nothing is in flight until the pause is over.
  reopening,    ///< The pause is over, and the sink must be opened.
  rejected,     ///< An event was rejected, and nothing more is sent until a person acts.
  stopping,     ///< A stop was requested: what is in flight gets its outcome and is settled.
};
[[nodiscard]] const char* to_string(Mode mode) noexcept;

/// The event that stopped the subscription.
struct Rejection {
  std::int64_t seq{0};
  EventId id{};
  Error error;
};

class SinkState {
 public:
  explicit SinkState(BackoffPolicy backoff = {}, std::uint64_t seed = 0)
      : backoff_(backoff), seed_(seed) {}

  // ---- input

  void sent(std::size_t events) { in_flight_ += events; }
  void acked(TimePoint now);
  /// An event was rejected and will be parked. A gapless sink has stopped itself and is opened
  /// again; for other sinks nothing changes. Many rejections in a row, with no ack in between, mean
  /// that the destination is at fault.
  void rejected(const Outcome& outcome, const EventView& event, bool gapless, TimePoint now);
  /// The sink refused an event by itself. Nothing was sent, so the sink has not stopped, and
  /// nothing is known of the destination.
  void refused(TimePoint now) { outcome_came(now); }
  /// A parked event failed again, by its own fault. A gapless sink has stopped itself.
  void retry_failed(bool gapless, TimePoint now);
  struct Failure {
    bool suspect{false};  ///< Whether the event has failed by its own fault before.
    bool gapless{false};
  };
  /// An event that may be at fault itself failed with `unknown` or `retry`: it was sent alone, or
  /// the sink is not gapless and goes on with other keys. If two events in a row and everything in
  /// flight have failed, or many in a row, the sink pauses. A gapless sink has stopped itself.
  [[nodiscard]] Doubt doubted(const Outcome& outcome, const EventView& event, Failure failure,
                              TimePoint now);
  /// The outcome of a send whose event was set aside meanwhile.
  void late(const Outcome& outcome, const EventView& event, TimePoint now);
  /// The outcome of one send will never come.
  void left(TimePoint now) { outcome_came(now); }
  /// Too many keys are slow at once.
  void suspect_slow(std::size_t keys, TimePoint now);
  /// Any other outcome came.
  void failed(const Outcome& outcome, const EventView& event, TimePoint now);
  /// The sink was opened, or could not be.
  void opened(const Status& status, TimePoint now);
  /// Sends nothing more. With `fill_gaps` events before one that is acked or in flight are still
  /// sent, so that this one can be settled and is not repeated.
  void stop_requested(bool fill_gaps);

  // ---- decisions

  /// Whether the sink must be opened now.
  [[nodiscard]] bool wants_open(TimePoint now);
  [[nodiscard]] bool may_send() const { return mode_ == Mode::delivering; }
  /// How many events may be sent at once; 0 if none may be sent now. After pauses without an ack
  /// one event goes alone, then 2, 4, 8 and so on, each time with nothing else in flight.
  [[nodiscard]] std::size_t batch_limit() const;
  void be_careful();
  [[nodiscard]] bool careful() const { return careful_limit_ != 0; }
  /// Whether the retries wait until nothing else is in flight. The strands send nothing then.
  void ask_alone(bool asked) { alone_asked_ = asked; }
  [[nodiscard]] bool alone_asked() const { return alone_asked_; }
  [[nodiscard]] bool last_was_ack() const { return neighbours_.last_was_ack(); }
  [[nodiscard]] bool may_fill_gaps() const { return fills_gaps_; }
  /// How often the sink was opened. After each time, what was not acked is sent again.
  [[nodiscard]] std::uint64_t openings() const { return openings_; }
  /// How many events were acked so far.
  [[nodiscard]] std::uint64_t accepted() const { return accepted_; }
  /// How often the destination was suspected because of rejected events.
  [[nodiscard]] std::uint64_t suspicions() const { return suspicions_; }

  // ---- state

  [[nodiscard]] Mode mode() const { return mode_; }
  [[nodiscard]] std::size_t in_flight() const { return in_flight_; }
  [[nodiscard]] const std::optional<Rejection>& rejection() const { return rejection_; }
  [[nodiscard]] const Error& last_failure() const { return last_failure_; }
  [[nodiscard]] int failures() const { return failures_; }
  /// The end of the pause after the newest failure.
  [[nodiscard]] const std::optional<TimePoint>& pause_until() const { return pause_until_; }

 private:
  void note(const Outcome& outcome, const EventView& event);
  void suspect(const Outcome& outcome, const EventView& event);
  void give_up();
  void stopped_by_event();
  void outcome_came(TimePoint now);
  void enter_pause(TimePoint now);

  const BackoffPolicy backoff_;
  const std::uint64_t seed_;
  Mode mode_{Mode::reopening};
  bool fills_gaps_{false};
  std::size_t in_flight_{0};
  std::uint64_t openings_{0};
  std::uint64_t accepted_{0};
  std::uint64_t suspicions_{0};
  int rejected_in_a_row_{0};
  Neighbours neighbours_;
  int fresh_in_a_row_{0};  ///< Events in doubt since the last ack, without suspects.
  int failed_runs_{0};     ///< Pauses since the last ack that failed events have caused.
  std::size_t careful_limit_{0};
  bool alone_asked_{false};
  // Since the sink was opened:
  bool stopped_by_event_{false};  ///< A rejected event has stopped a gapless sink.
  bool at_fault_{false};          ///< The destination said that it is at fault, or is suspected.
  std::optional<TimePoint> pause_until_;
  std::optional<Duration> requested_pause_;
  std::optional<Rejection> rejection_;
  Error last_failure_;
  int failures_{0};
};

}  // namespace outbox::relay
