// The decisions about a subscription's parked events: which are sent now, and what becomes of them. Pure, like the delivery cores it
// stands beside. The events of a key form a chain: the next one is sent once the one before it is acked.
// docs/design/parking.md, "Beside the stream".
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <outbox/sink.hpp>
#include <span>
#include <unordered_map>
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
};

class RetryCore {
 public:
  using Send = DeliveryCore::Send;

  /// `sink` and `gate` are those of the subscription, and outlive the core.
  RetryCore(RetryOptions options, SinkState& sink, KeyGate& gate);

  // ---- what happened

  /// An event that is parked may be due then.
  void due_at(TimePoint when);
  /// The answer to wants_load().
  void loaded(store::DueEvents due, TimePoint now);
  void outcome(const Outcome& outcome, TimePoint now);
  /// The results() last given are written.
  void written(TimePoint now);
  void stop_requested() { stopping_ = true; }

  // ---- what to do

  /// The events that are due should be read, with those that wait behind them. Then call load_asked(), and loaded() with the answer.
  [[nodiscard]] bool wants_load(TimePoint now) const;
  void load_asked();
  /// The next events to hand over. Hand over a prefix, then call handed_over(n). The pointers stay valid until their outcome.
  [[nodiscard]] std::span<const Send> to_send();
  void handed_over(std::size_t count);
  /// What is to be written now; none while the last results are being written.
  [[nodiscard]] std::vector<store::RetryResult> results(TimePoint now);
  /// When wants_load() or results() will have something.
  [[nodiscard]] std::optional<TimePoint> next_at() const;

  // ---- how it stands

  /// Stopping, nothing in flight, all results written.
  [[nodiscard]] bool finished() const;
  [[nodiscard]] Token next_token() const { return next_token_; }

 private:
  /// Events of one key, in the order of seq.
  struct Chain {
    std::uint64_t key{0};
    std::vector<store::ParkedRow> rows;
    std::size_t at{0};  ///< The one that is sent next, or in flight.
    bool in_flight{false};
    std::uint64_t accepted_before{0};  ///< What the sink had acked when it was sent.
  };
  /// A result, and what it means for its key.
  struct Ended {
    std::uint64_t key{0};
    bool releases{false};  ///< The event no longer blocks its key.
  };

  void give(store::RetryResult result, const Chain& chain, bool releases, TimePoint now);
  void next_of(std::map<Token, Chain>::iterator chain);
  void failed(Chain& chain, const Error& error, TimePoint now);
  void drop_done_chains();

  const RetryOptions options_;
  SinkState& sink_;
  KeyGate& gate_;

  std::map<Token, Chain> chains_;  ///< By the token of the event that is sent next, or in flight.
  std::shared_ptr<const void> storage_;
  std::vector<Send> batch_;
  Token next_token_;

  bool loading_{false};
  bool stopping_{false};
  std::optional<TimePoint> due_;
  std::vector<store::RetryResult> results_;
  std::vector<Ended> ended_;
  std::vector<Ended> writing_;
  std::optional<TimePoint> oldest_result_;
};

}  // namespace outbox::relay
