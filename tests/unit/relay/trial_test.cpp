// Tests which events are sent on trial, and what is left of a trial when relays die in it: first
// step by step, then in simulated worlds whose relays are killed, frozen and stopped.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "relay/trial_gate.hpp"

namespace outbox::relay {
namespace {

using StepKind = TrialGate::Step::Kind;
using store::FormerRun;

/// Events that a source would send next.
class Events {
 public:
  Events(std::int64_t first, std::size_t count) {
    events_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      events_[i].seq = first + static_cast<std::int64_t>(i);
      sends_.push_back({.token = i + 1, .event = &events_[i]});
    }
  }
  explicit Events(const std::vector<std::int64_t>& seqs) {
    events_.resize(seqs.size());
    for (std::size_t i = 0; i < seqs.size(); ++i) {
      events_[i].seq = seqs[i];
      sends_.push_back({.token = i + 1, .event = &events_[i]});
    }
  }
  [[nodiscard]] std::span<const DeliveryCore::Send> sends() const { return sends_; }

 private:
  std::vector<EventView> events_;
  std::vector<DeliveryCore::Send> sends_;
};

FormerRun died(std::int64_t generation, std::size_t range = 0, std::int64_t seq = 0) {
  return {.generation = generation,
          .lanes = store::kAllLanes,
          .place = "here",
          .range = range,
          .seq = seq};
}

// ---- step by step

TEST(Trials, one_death_changes_nothing) {
  TrialGate gate(100);
  const auto beginning = gate.add(1, {died(1)}, "here");
  EXPECT_EQ(beginning.range, 0U);
  EXPECT_EQ(beginning.keep, std::vector<std::int64_t>{1});
  EXPECT_FALSE(gate.active());
}

TEST(Trials, deaths_at_other_places_are_forgotten) {
  TrialGate gate(100);
  EXPECT_TRUE(gate.add(1, {died(2), died(1)}, "there").keep.empty());
  EXPECT_FALSE(gate.active());
}

TEST(Trials, deaths_on_different_lanes_are_one_each) {
  TrialGate gate(100);
  FormerRun left = died(2);
  FormerRun right = died(1);
  left.lanes = 1;
  right.lanes = 2;
  EXPECT_EQ(gate.add(1, {left, right}, "here").keep.size(), 2U);
  EXPECT_FALSE(gate.on());
}

TEST(Trials, a_relay_that_lives_is_not_dead) {
  TrialGate gate(100);
  FormerRun frozen = died(2);
  frozen.alive = true;
  EXPECT_EQ(gate.add(1, {frozen, died(1)}, "here").keep, std::vector<std::int64_t>{1});
  EXPECT_FALSE(gate.on());
}

TEST(Trials, without_parking_nothing_is_tried) {
  TrialGate gate(0);
  EXPECT_EQ(gate.add(1, {died(3), died(2), died(1)}, "here").keep.size(), 2U) << "bounded";
  EXPECT_FALSE(gate.active());
}

TEST(Trials, ranges_double_until_the_window_has_passed) {
  TrialGate gate(10000);
  EXPECT_EQ(gate.add(1, {died(2), died(1)}, "here").range, 1U);
  std::vector<std::size_t> ranges;
  std::int64_t at = 1;
  for (;;) {
    const Events events(at, 20000);
    const auto step = gate.next(1, events.sends(), true);
    if (step.kind == StepKind::over) break;
    ASSERT_EQ(step.kind, StepKind::record);
    ASSERT_TRUE(gate.recorded(1, at, {1, 2, 3}));
    EXPECT_EQ(gate.next(1, events.sends(), false).count, step.count);
    gate.sent(step.count);
    EXPECT_EQ(gate.next(1, Events(at + 1, 5).sends(), false).kind, StepKind::wait);
    ranges.push_back(step.count);
    at += static_cast<std::int64_t>(step.count);
  }
  EXPECT_EQ(ranges.size(), 14U);
  EXPECT_EQ(ranges[12], 4096U);
  EXPECT_EQ(at, 10001) << "nothing behind the window is tried";
  EXPECT_TRUE(gate.end().empty());
  EXPECT_FALSE(gate.active());
}

TEST(Trials, after_a_death_in_a_range_half_of_it_comes_first_and_then_half_of_the_rest) {
  TrialGate gate(10000);
  EXPECT_EQ(gate.add(1, {died(3, 8, 100), died(2)}, "behind").range, 4U);
  std::vector<std::size_t> ranges;
  for (std::int64_t at = 100; ranges.size() < 7;) {
    const Events events(at, 20000);
    ranges.push_back(gate.next(1, events.sends(), true).count);
    ASSERT_TRUE(gate.recorded(1, at, {1, 2, 3}));
    gate.sent(ranges.back());
    at += static_cast<std::int64_t>(ranges.back());
  }
  EXPECT_EQ(ranges, (std::vector<std::size_t>{4, 2, 1, 1, 2, 4, 8}));
}

TEST(Trials, what_ended_in_order_goes_on_where_it_was) {
  TrialGate gate(10000);
  FormerRun ended = died(3, 64);
  ended.alive = true;
  const auto beginning = gate.add(1, {ended, died(2), died(1)}, "behind");
  EXPECT_EQ(beginning.range, 64U);
  EXPECT_EQ(beginning.keep, (std::vector<std::int64_t>{2, 1}));
}

TEST(Trials, the_trial_is_over_when_the_relays_have_come_back) {
  TrialGate gate(10000);
  (void)gate.add(1, {died(2), died(1)}, "here");
  const Events events(1, 10);
  ASSERT_EQ(gate.next(1, events.sends(), true).kind, StepKind::record);
  EXPECT_FALSE(gate.recorded(1, 1, {2}));
  EXPECT_TRUE(gate.end().empty());
  EXPECT_EQ(gate.next(1, events.sends(), false).count, 10U);
}

TEST(Trials, one_death_alone_is_not_enough) {
  TrialGate gate(10000);
  (void)gate.add(1, {died(3, 1, 7), died(2)}, "here");
  const auto step = gate.next(1, Events(7, 10).sends(), true);
  EXPECT_EQ(step.kind, StepKind::record);
  EXPECT_EQ(step.count, 1U);
}

TEST(Trials, an_event_that_was_alone_at_two_deaths_is_the_culprit_and_the_trial_is_over) {
  TrialGate gate(10000);
  (void)gate.add(1, {died(4, 1, 7), died(3, 1, 7), died(2), died(1)}, "here");
  const auto step = gate.next(1, Events(7, 10).sends(), true);
  EXPECT_EQ(step.kind, StepKind::culprit);
  EXPECT_EQ(step.count, 2U);
  EXPECT_EQ(gate.end(), (std::vector<std::int64_t>{3, 4})) << "for its retries";
  EXPECT_FALSE(gate.on());
}

TEST(Trials, a_parked_culprit_is_sent_alone_and_each_death_counts_once) {
  FormerRun newest = died(4, 1, 7);
  FormerRun before = died(3, 1, 7);
  newest.parked = before.parked = true;
  before.counted = true;
  for (const bool fresh : {true, false}) {
    newest.counted = !fresh;
    TrialGate gate(10000);
    EXPECT_EQ(gate.add(1, {newest, before}, "far behind").range, 0U);
    EXPECT_FALSE(gate.on());
    if (fresh) {
      EXPECT_EQ(gate.next(0, Events(7, 1).sends(), true).kind, StepKind::culprit);
      EXPECT_EQ(gate.end().size(), 2U);
    }
    const Events retries(5, 4);
    EXPECT_EQ(gate.next(0, retries.sends(), false).count, 2U) << "up to it";
    const Events culprit(7, 2);
    EXPECT_EQ(gate.next(0, culprit.sends(), false).kind, StepKind::wait);
    EXPECT_EQ(gate.next(1, Events(50, 9).sends(), false).kind, StepKind::wait)
        << "else it would never be alone";
    EXPECT_EQ(gate.turn(), 0U);
    const auto step = gate.next(0, culprit.sends(), true);
    EXPECT_EQ(step.kind, StepKind::record);
    EXPECT_EQ(step.count, 1U);
    EXPECT_TRUE(gate.recorded(0, 7, {4, 3}));
    EXPECT_EQ(gate.next(0, culprit.sends(), false).count, 1U);
    gate.sent(1);
    EXPECT_EQ(gate.next(1, Events(50, 9).sends(), false).kind, StepKind::wait);
    EXPECT_TRUE(gate.used_up());
    EXPECT_EQ(gate.end().size(), 2U);
    EXPECT_EQ(gate.next(1, Events(50, 9).sends(), false).count, 9U);
  }
}

TEST(Trials, what_has_begun_a_trial_lets_it_go_on) {
  FormerRun newest = died(4, 1, 7);
  FormerRun before = died(3, 1, 7);
  newest.parked = before.parked = true;
  newest.lanes = before.lanes = 1;
  FormerRun beside = died(4);  // It is the same run as `newest`, on other lanes.
  beside.lanes = 2;
  TrialGate gate(10000);
  (void)gate.add(1, {died(5), newest, beside, before}, "here");
  EXPECT_TRUE(gate.on()) << "two deaths on a lane";
  const Events events(50, 9);
  ASSERT_EQ(gate.next(1, events.sends(), true).kind, StepKind::record);
  EXPECT_TRUE(gate.recorded(1, 50, {5, 4, 3}));
}

// ---- in simulated worlds

/// The rows of `run` as the stores keep them, and which relays are registered.
class Table {
 public:
  /// `parked` has the attempts of the parked events, by seq.
  [[nodiscard]] std::vector<FormerRun> former(
      store::LaneMask lanes, int relay, const std::map<std::int64_t, std::size_t>& parked) const {
    std::vector<FormerRun> found;
    for (const Row& row : rows_) {
      if ((row.lanes & lanes) == 0) continue;
      found.push_back({.generation = row.generation,
                       .lanes = row.lanes & lanes,
                       .place = row.place,
                       .range = row.tried,
                       .seq = row.seq,
                       .parked = parked.contains(row.seq),
                       .alive = row.relay == 0 || row.relay == relay || alive.contains(row.relay),
                       .counted = (row.uncounted & lanes) == 0});
    }
    std::sort(found.begin(), found.end(), [](const FormerRun& one, const FormerRun& other) {
      return one.generation > other.generation;
    });
    return found;
  }
  void begin(store::LaneMask lanes, std::int64_t generation, int relay, const std::string& place,
             const TrialGate::Beginning& beginning) {
    forget(lanes, beginning.keep);
    for (Row& row : rows_) row.uncounted &= ~lanes;
    rows_.push_back({lanes, generation, relay, place, beginning.range, 0, lanes});
  }
  std::vector<std::int64_t> open(store::LaneMask held, std::int64_t generation,
                                 store::LaneMask lanes, std::size_t range, std::int64_t seq) {
    std::set<std::int64_t> deaths;
    ++opened;
    for (Row& row : rows_) {
      if (row.generation == generation) {
        const bool here = (row.lanes & lanes) != 0;
        row.tried = here ? range : 0;
        row.seq = here ? seq : 0;
      } else if ((row.lanes & held) != 0 && row.relay != 0) {
        deaths.insert(row.generation);
      }
    }
    return {deaths.begin(), deaths.end()};
  }
  void close(store::LaneMask held, std::int64_t generation, const std::vector<std::int64_t>& keep) {
    for (Row& row : rows_) {
      const bool kept =
          row.generation == generation ||
          (row.tried == 1 && std::count(keep.begin(), keep.end(), row.generation) > 0);
      if (!kept) row.lanes &= ~held;
      if (row.generation != generation) continue;
      row.tried = 0;
      row.seq = 0;
    }
    std::erase_if(rows_, [](const Row& row) { return row.lanes == 0; });
  }
  void end(std::int64_t generation) {
    std::erase_if(rows_,
                  [&](const Row& row) { return row.generation == generation && row.tried == 0; });
    for (Row& row : rows_) {
      if (row.generation != generation) continue;
      row.relay = 0;
      row.seq = 0;
    }
  }
  void come_back(int relay) {
    for (Row& row : rows_) {
      if (row.relay == relay) row.relay = 0;
    }
    alive.insert(relay);
  }
  [[nodiscard]] std::size_t size() const { return rows_.size(); }

  std::set<int> alive;  ///< Relays that are registered.
  std::size_t opened{0};

 private:
  struct Row {
    store::LaneMask lanes;
    std::int64_t generation;
    int relay;  ///< 0 stands for null.
    std::string place;
    std::size_t tried;
    std::int64_t seq;
    store::LaneMask uncounted;
  };

  void forget(store::LaneMask lanes, const std::vector<std::int64_t>& keep) {
    for (Row& row : rows_) {
      if (std::find(keep.begin(), keep.end(), row.generation) == keep.end()) row.lanes &= ~lanes;
    }
    std::erase_if(rows_, [](const Row& row) { return row.lanes == 0; });
  }

  std::vector<Row> rows_;
};

/// 64 lanes with a log each, and parked events, which are all due. Some of the events kill
/// the relay that sends them.
class World {
 public:
  World(std::size_t events, std::set<std::int64_t> culprits, unsigned seed,
        std::size_t window = 10000)
      : culprits_(std::move(culprits)), window_(window), random_(seed) {
    for (std::size_t i = 0; i < events; ++i) {
      const std::size_t lane = events > 20000 ? i % 64 : 0;
      lanes_[lane].log.push_back(static_cast<std::int64_t>(i + 1));
    }
  }

  struct Strand {
    store::LaneMask lanes{0};
    std::vector<std::int64_t> log;  ///< The events that are not settled.
    std::size_t done{0};            ///< How many of these are acked.
  };
  struct Relay {
    int id{0};
    std::int64_t generation{0};
    store::LaneMask lanes{0};
    TrialGate gate;
    std::vector<Strand> strands;
    std::vector<std::int64_t> retried;    ///< Parked events that were sent and are not settled.
    std::vector<std::int64_t> unsettled;  ///< All events that were sent and are not settled.
  };

  /// Begins the runs of a relay on these lanes, in at most so many strands.
  Relay begin(int id, store::LaneMask lanes, std::size_t strands) {
    Relay relay;
    relay.id = id;
    relay.generation = ++generation_;
    relay.lanes = lanes;
    relay.gate = TrialGate(window_);
    table.alive.insert(id);
    for (std::size_t i = 0; i < strands; ++i) {
      Strand strand;
      for (std::size_t lane = 0; lane < 64; ++lane) {
        if (lane % strands != i || ((lanes >> lane) & 1U) == 0) continue;
        strand.lanes |= store::LaneMask{1} << lane;
        const Lane& from = lanes_[lane];
        strand.log.insert(strand.log.end(),
                          from.log.begin() + static_cast<std::ptrdiff_t>(from.cursor),
                          from.log.end());
      }
      if (strand.lanes == 0) continue;
      std::sort(strand.log.begin(), strand.log.end());
      const std::string place = strand.log.empty() ? "end" : std::to_string(strand.log.front());
      relay.strands.push_back(strand);
      const auto beginning =
          relay.gate.add(relay.strands.size(), table.former(strand.lanes, id, parked), place);
      table.begin(strand.lanes, relay.generation, id, place, beginning);
    }
    return relay;
  }

  /// Sends what may go of each source, as the loop does. Returns false if no source has an event,
  /// or the relay has died.
  bool step(Relay& relay) {
    const std::size_t sources = relay.strands.size() + 1;
    const std::size_t first = relay.gate.turn();
    bool any = false;
    for (std::size_t i = 0; i < sources; ++i) {
      const std::size_t source = (first + i) % sources;
      Strand* const strand = source == TrialGate::kRetries ? nullptr : &relay.strands[source - 1];
      if (next_of(relay, strand).empty()) continue;
      any = true;
      if (!send(relay, source, strand)) return false;
    }
    if (!any) settle_all(relay);
    return any;
  }
  void settle_all(Relay& relay) {
    for (Strand& strand : relay.strands) settle(strand, strand.done);
    for (const std::int64_t seq : std::exchange(relay.retried, {})) parked.erase(seq);
    relay.unsettled.clear();
  }
  /// The relay dies without settling anything more.
  void kill(Relay& relay) {
    table.alive.erase(relay.id);
    note_death(relay);
  }
  void stop(Relay& relay) {
    settle_all(relay);
    table.end(relay.generation);
  }
  [[nodiscard]] bool done() const {
    return parked.size() == dead.size() &&
           std::all_of(lanes_.begin(), lanes_.end(),
                       [](const Lane& lane) { return lane.cursor == lane.log.size(); });
  }

  Table table;
  std::map<std::int64_t, std::size_t> parked;  ///< The attempts of the parked events, by seq.
  std::set<std::int64_t> dead;                 ///< The parked events that are dead.
  std::size_t deaths{0};
  bool innocent_parked{false};
  bool settles{true};  ///< Whether relays settle also now and then, and just before a death.
  /// At how many deaths only this event was sent and not settled, by seq.
  std::map<std::int64_t, std::size_t> alone;

 private:
  struct Lane {
    std::vector<std::int64_t> log;
    std::size_t cursor{0};
  };

  /// The events that the strand would send next, or the retries if `strand` is null.
  [[nodiscard]] std::vector<std::int64_t> next_of(const Relay& relay, const Strand* strand) const {
    if (strand != nullptr) {
      const auto from = strand->log.begin() + static_cast<std::ptrdiff_t>(strand->done);
      const auto most = std::min<std::size_t>(strand->log.size() - strand->done, 1000);
      return {from, from + static_cast<std::ptrdiff_t>(most)};
    }
    std::vector<std::int64_t> due;
    if ((relay.lanes & kLaneOfParked) == 0) return due;
    for (const auto& [seq, attempts] : parked) {
      const auto& sent = relay.retried;
      if (due.size() < 100 && !dead.contains(seq) &&
          std::find(sent.begin(), sent.end(), seq) == sent.end())
        due.push_back(seq);
    }
    return due;
  }

  bool send(Relay& relay, std::size_t source, Strand* strand) {
    const std::vector<std::int64_t> seqs = next_of(relay, strand);
    const Events events(seqs);
    for (;;) {
      const auto answer = relay.gate.active()
                              ? relay.gate.next(source, events.sends(), relay.unsettled.empty())
                              : TrialGate::Step{.kind = StepKind::send, .count = seqs.size()};
      if (answer.kind == StepKind::send) {
        return strand != nullptr ? deliver(relay, *strand, answer.count)
                                 : retry(relay, seqs, answer.count);
      }
      if (answer.kind == StepKind::wait) {
        settle_all(relay);
        return true;
      }
      if (answer.kind == StepKind::record) {
        const auto lanes = strand != nullptr ? strand->lanes : store::kAllLanes;
        const auto deaths_known =
            table.open(relay.lanes, relay.generation, lanes, answer.count, seqs.front());
        if (relay.gate.recorded(source, seqs.front(), deaths_known)) continue;
      }
      table.close(relay.lanes, relay.generation, relay.gate.end());
      if (answer.kind != StepKind::culprit) continue;
      refuse(relay, seqs.front(), strand);
      return true;
    }
  }

  void refuse(Relay& relay, std::int64_t seq, Strand* strand) {
    innocent_parked = innocent_parked || alone[seq] < 2;
    if (strand != nullptr) {
      parked[seq] = 2;
      ++strand->done;
      settle_all(relay);
    } else if (++parked[seq] == kMaxAttempts) {
      dead.insert(seq);
    }
  }

  bool retry(Relay& relay, const std::vector<std::int64_t>& seqs, std::size_t count) {
    relay.gate.sent(count);
    bool dies = false;
    for (std::size_t i = 0; i < count; ++i) {
      relay.unsettled.push_back(seqs[i]);
      relay.retried.push_back(seqs[i]);
      dies = dies || culprits_.contains(seqs[i]);
    }
    if (dies) kill(relay);
    return !dies;
  }

  bool deliver(Relay& relay, Strand& strand, std::size_t count) {
    relay.gate.sent(count);
    bool dies = false;
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t seq = strand.log[strand.done + i];
      relay.unsettled.push_back(seq);
      dies = dies || culprits_.contains(seq);
    }
    if (dies) {
      if (settles) settle(strand, strand.done);
      kill(relay);
      return false;
    }
    strand.done += count;
    if (settles && !relay.gate.active() && random_() % 4 == 0) settle_all(relay);
    return true;
  }

  void note_death(const Relay& relay) {
    ++deaths;
    if (relay.unsettled.size() == 1) ++alone[relay.unsettled.front()];
  }

  void settle(Strand& strand, std::size_t count) {
    if (count == 0) return;
    const std::int64_t last = strand.log[count - 1];
    for (std::size_t lane = 0; lane < 64; ++lane) {
      if (((strand.lanes >> lane) & 1U) == 0) continue;
      Lane& into = lanes_[lane];
      while (into.cursor < into.log.size() && into.log[into.cursor] <= last) ++into.cursor;
    }
    strand.log.erase(strand.log.begin(), strand.log.begin() + static_cast<std::ptrdiff_t>(count));
    strand.done = 0;
  }

  static constexpr std::size_t kMaxAttempts = 5;
  static constexpr store::LaneMask kLaneOfParked = 1;

  std::array<Lane, 64> lanes_;
  std::set<std::int64_t> culprits_;
  std::size_t window_;
  std::mt19937 random_;
  std::int64_t generation_{0};
};

TEST(TrialWorld, one_culprit_among_ten_thousand_is_found_within_sixteen_deaths) {
  std::set<std::int64_t> places;
  for (std::int64_t at = 1; at <= 10000; at += 61) places.insert(at);
  for (std::int64_t power = 1; power <= 8192; power *= 2)
    places.insert({std::max<std::int64_t>(power - 1, 1), power, power + 1});
  places.insert(10000);
  std::size_t most = 0;
  for (const std::int64_t culprit : places) {
    World world(10000, {culprit}, 1);
    world.settles = false;  // A settlement just before a death would make the search easier.
    for (int relay = 1; world.parked.empty(); ++relay) {
      auto one = world.begin(relay, store::kAllLanes, 1);
      while (world.parked.empty() && world.step(one)) {
      }
      ASSERT_LE(world.deaths, 16U) << "culprit " << culprit;
    }
    EXPECT_EQ(world.parked.size(), 1U);
    EXPECT_TRUE(world.parked.contains(culprit));
    EXPECT_FALSE(world.innocent_parked);
    most = std::max(most, world.deaths);
  }
  EXPECT_EQ(most, 16U) << "the figure of docs/design/trials.md";
}

TEST(TrialWorld, a_healthy_subscription_is_at_full_speed_after_fourteen_rows) {
  World world(15000, {}, 1);
  int relay = 0;
  for (; relay < 20; ++relay) {
    auto one = world.begin(relay + 1, store::kAllLanes, 1);
    world.kill(one);
  }
  world.table.opened = 0;
  auto last = world.begin(relay + 1, store::kAllLanes, 1);
  EXPECT_TRUE(last.gate.on());
  while (world.step(last)) {
  }
  EXPECT_FALSE(last.gate.active());
  EXPECT_LE(world.table.opened, 14U);
  EXPECT_TRUE(world.done());
  EXPECT_TRUE(world.parked.empty());
  EXPECT_LE(world.table.size(), 1U) << "the row of the run";
}

/// Runs rounds until everything has arrived. Each round shares the lanes out anew among relays,
/// which are then killed, frozen or stopped, unless they die of a culprit.
void run_world(unsigned seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 dice(seed);
  const auto pick = [&dice](std::size_t below) { return std::size_t{dice()} % below; };
  std::set<std::int64_t> culprits;
  for (std::size_t i = pick(4); i > 0; --i)
    culprits.insert(static_cast<std::int64_t>(1 + pick(25000)));
  std::map<std::int64_t, std::size_t> parked;
  for (std::size_t i = pick(300); i > 0; --i) parked[100000 + static_cast<std::int64_t>(i)] = 1;
  for (std::size_t i = std::min(pick(3), parked.size()); i > 0; --i)
    culprits.insert(100000 + static_cast<std::int64_t>(1 + pick(parked.size())));
  World world(25000, culprits, seed, 1000);
  world.parked = parked;
  int next_id = 0;
  std::vector<int> frozen;
  for (int round = 0; !world.done(); ++round) {
    ASSERT_LT(round, 600);
    const bool calm = round > 60;
    for (const int relay : std::exchange(frozen, {})) world.table.come_back(relay);
    std::vector<World::Relay> relays;
    const std::size_t parts = 1 + pick(3);
    for (std::size_t part = 0; part < parts; ++part) {
      store::LaneMask lanes = 0;
      for (std::size_t lane = 0; lane < 64; ++lane) {
        if (lane % parts == part) lanes |= store::LaneMask{1} << lane;
      }
      relays.push_back(world.begin(++next_id, lanes, 1 + pick(3)));
    }
    for (World::Relay& relay : relays) {
      const std::size_t steps = calm ? 100000 : pick(40);
      bool lives = true;
      for (std::size_t i = 0; i < steps; ++i) {
        const std::size_t before = world.deaths;
        if (!world.step(relay)) {
          lives = world.deaths == before;
          break;
        }
      }
      if (!lives) continue;
      switch (calm ? 0 : pick(3)) {
        case 0: world.stop(relay); break;
        case 1: world.kill(relay); break;
        default:
          world.kill(relay);
          --world.deaths;
          frozen.push_back(relay.id);
      }
    }
  }
  EXPECT_EQ(world.dead, culprits);
  EXPECT_FALSE(world.innocent_parked) << "parked without two deaths alone";
}

TEST(TrialWorld, whatever_happens_all_arrives_and_only_what_was_alone_at_two_deaths_is_parked) {
  for (unsigned seed = 1; seed <= 300 && !::testing::Test::HasFailure(); ++seed) run_world(seed);
}

}  // namespace
}  // namespace outbox::relay
