// A destination, and a client of it that fails.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <outbox/sink.hpp>
#include <set>
#include <vector>

#include "sim/outages.hpp"
#include "sim/random.hpp"

namespace outbox::sim {

/// The destination: what arrived, in order.
class Topic {
 public:
  void arrive(std::int64_t seq, std::int64_t replay = 0) {
    arrivals_.push_back(seq);
    replays_.push_back(replay);
    if (counts_.size() <= static_cast<std::size_t>(seq))
      counts_.resize(static_cast<std::size_t>(seq) + 1);
    ++counts_[static_cast<std::size_t>(seq)] == 1 ? ++distinct_ : ++duplicates_;
  }
  [[nodiscard]] bool has(std::int64_t seq) const {
    return static_cast<std::size_t>(seq) < counts_.size() &&
           counts_[static_cast<std::size_t>(seq)] > 0;
  }
  [[nodiscard]] const std::vector<std::int64_t>& arrivals() const { return arrivals_; }
  /// By arrival: the replay whose mark it has; 0: none.
  [[nodiscard]] const std::vector<std::int64_t>& replays() const { return replays_; }
  [[nodiscard]] std::uint64_t distinct() const { return distinct_; }
  [[nodiscard]] std::uint64_t duplicates() const { return duplicates_; }

 private:
  std::vector<std::int64_t> arrivals_;
  std::vector<std::int64_t> replays_;
  std::vector<std::uint32_t> counts_;  ///< By seq.
  std::uint64_t distinct_{0};
  std::uint64_t duplicates_{0};
};

/// A client of the topic that loses, delays and reorders outcomes, but keeps the no-gap rule when
/// its traits claim it.
class SimSink {
 public:
  SimSink(Random& random, Topic& topic, bool gapless)
      : random_(random), topic_(topic), gapless_(gapless) {}
  /// False: it refuses the event by itself, and goes on.
  [[nodiscard]] bool send(Token token, const EventView& event);
  /// One step at the destination; outcomes may become ready.
  void step();
  [[nodiscard]] std::vector<Outcome> receive();
  [[nodiscard]] bool rings() const { return !ready_.empty(); }
  void open() { broken_ = false; }
  /// The process dies: what was in flight may arrive, in order, without a gap.
  void crash();
  /// The same while the process lives: all in flight is in doubt.
  void purge();
  /// Reports late what a client before it was asked to deliver.
  void report_late(const SimSink& before) { acked_ = before.acked_; }
  unsigned fail_percent{0};
  unsigned lie_percent{0};        ///< Reports twice, late, and what it never got.
  std::set<std::int64_t> poison;  ///< These are rejected.
  /// So many of 100 events are rejected: the first times, or for good.
  unsigned reject_percent{0};
  /// So many of 100 events are refused before anything is sent: the first times, or for good.
  unsigned refuse_percent{0};
  /// So many of 100 events always fail, without a verdict: the first times, or for good.
  unsigned sick_percent{0};
  /// So many of 100 take long, the first time.
  unsigned slow_percent{0};
  /// While the destination is down everything fails.
  Outages outages;

  std::uint64_t lies{0};

  /// How often the event is rejected.
  [[nodiscard]] int rejections(std::int64_t seq) const;
  /// How often the sink refuses it by itself.
  [[nodiscard]] int refusals(std::int64_t seq) const;
  /// How often it fails without a verdict.
  [[nodiscard]] int failures(std::int64_t seq) const;
  [[nodiscard]] bool has_in_flight(std::int64_t seq) const;

 private:
  struct InFlight {
    Token token{0};
    std::int64_t seq{0};
    int until{0};            ///< No outcome before this step.
    std::int64_t replay{0};  ///< By its header.
  };
  void settle_front();
  void fail(const InFlight& message, Outcome& outcome);
  void lie(const Outcome& truth);
  Random& random_;
  Topic& topic_;
  bool gapless_;
  bool broken_{false};
  std::deque<InFlight> flying_;
  std::vector<Outcome> ready_;
  std::vector<Token> acked_;  ///< Of this client and, by a late report, of those before it.
  std::map<std::int64_t, int> rejected_;
  std::map<std::int64_t, int> refused_;
  std::map<std::int64_t, int> failed_;
  std::set<std::int64_t> slowed_;
  int step_{0};
};

}  // namespace outbox::sim
