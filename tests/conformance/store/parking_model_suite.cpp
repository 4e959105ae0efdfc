// Tests that each store keeps the law of parking (docs/design/parking.md) in random sequences of
// what the stream, retries, workers and people do, with results that are late, come twice or name
// another event. After each step the store must show what the model shows, which applies
// store/parking_law.hpp.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <random>
#include <string>

#include "conformance/store/fixture.hpp"
#include "event/key.hpp"
#include "sim/parked_table.hpp"
#include "support/lane_owner.hpp"

namespace outbox::conformance {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using store::ParkedState;

/// The number of sequences of a test run; OUTBOX_TEST_SEQUENCES sets another.
int sequences() {
  const char* const wanted = std::getenv("OUTBOX_TEST_SEQUENCES");
  return wanted == nullptr ? 60 : std::max(std::atoi(wanted), 1);
}
constexpr int kSteps = 25;

class ParkingModel : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    relay_ = std::make_unique<test::LaneOwner>(*store_, "relay");
    progress_ = std::move(*store_->progress());
    people_ = std::move(*store_->parked_events());
    runs_ = std::move(*store_->task_runs());
  }

  // ---- one sequence

  void begin(unsigned seed) {
    dice_.seed(seed);
    generation_ = relay_->keep(seconds(600))->generation;
    dead_blocks_ = chance(50);
    SubscriptionSpec spec = make_spec("s" + std::to_string(seed));
    spec.start = Start::now;
    spec.on_dead = dead_blocks_ ? OnDead::block : OnDead::proceed;
    row_ = subscribe(spec);
    model_.emplace(dead_blocks_);
    events_.clear();
  }
  void step() {
    switch (below(10)) {
      case 0:
      case 1: return park();
      case 2:
      case 3:
      case 4: return settle();
      case 5:
      case 6: return retry();
      case 7: return discard();
      case 8: return end_run();
      default: return claim();
    }
  }
  void compare() {
    std::map<std::int64_t, std::string> shown;
    const auto listed = people_->list({.subscription = row_.id}, 1000, false).value();
    for (const auto& event : listed)
      shown[event.seq] = std::string(to_string(event.state)) + " " + std::to_string(event.attempts);
    std::map<std::int64_t, std::string> expected;
    for (const auto& [seq, row] : model_->rows())
      expected[seq] = std::string(to_string(row.state)) + " " + std::to_string(row.attempts);
    ASSERT_EQ(shown, expected) << said_;
    std::map<std::uint64_t, std::int64_t> keys;
    const auto read = progress_->parked_keys(row_.id, store::kAllLanes, true).value();
    for (const auto& key : read.keys) keys[key.key] = key.run_seq;
    std::map<std::uint64_t, std::int64_t> model_keys;
    const auto wanted = model_->keys();
    for (const auto& key : wanted.keys) model_keys[key.key] = key.run_seq;
    ASSERT_EQ(keys, model_keys) << said_;
    ASSERT_EQ(read.live, wanted.live) << said_;
    ASSERT_EQ(due(progress_->due(row_.id, {store::kAllLanes, generation_}, {}, {}).value()),
              due(model_->due(now() + hours(1) - seconds(10))))
        << said_;
  }

  std::string said_;  ///< What was done, to be shown after a failure.

 private:
  struct Written {
    std::int64_t seq{0};
    EventId id{};
    std::uint64_t key{0};
  };

  unsigned below(unsigned limit) {
    return std::uniform_int_distribution<unsigned>(0, limit - 1)(dice_);
  }
  bool chance(unsigned percent) { return below(100) < percent; }
  static relay::TimePoint now() { return relay::TimePoint(hours(1000)); }
  const EventId& worker() { return workers_[below(2)]; }
  const Written& any() { return events_[below(static_cast<unsigned>(events_.size()))]; }
  template <class... Parts>
  void say(const Parts&... parts) {
    ((said_ +=
      [](const auto& part) {
        if constexpr (std::is_arithmetic_v<std::decay_t<decltype(part)>>) {
          return std::to_string(part);
        } else {
          return std::string(part);
        }
      }(parts)),
     ...);
    said_ += "\n";
  }

  static std::vector<std::string> due(const store::DueEvents& read) {
    std::vector<std::string> all;
    for (const auto& row : read.rows)
      all.push_back(std::to_string(row.event.seq) + " version " + std::to_string(row.version) +
                    " attempts " + std::to_string(row.attempts) + " token " +
                    std::to_string(row.token));
    std::sort(all.begin(), all.end());
    return all;
  }

  ParkedState any_state() {
    constexpr ParkedState kStates[] = {ParkedState::retrying, ParkedState::retrying,
                                       ParkedState::dead, ParkedState::running, ParkedState::ready};
    return kStates[below(std::size(kStates))];
  }

  /// Parks events of the log, the first of a key in any state, the others behind it.
  void park() {
    const unsigned count = 1 + below(3);
    std::vector<Event> events;
    for (unsigned i = 0; i < count; ++i) {
      const unsigned key = below(4);
      events.push_back(make_event(key == 0 ? "" : std::string(1, static_cast<char>('a' + key))));
    }
    (void)write(events);
    LogDrive drive(*store_, load(row_.id).cursor);
    const auto page = drive.next();
    ASSERT_EQ(page.events.size(), count);
    std::vector<store::ParkedEvent> parked;
    store::Settlement settlement;
    settlement.subscription = row_.id;
    settlement.lanes = store::kAllLanes;
    settlement.generation = generation_;
    settlement.config_version = row_.config_version;
    settlement.s1 = page.pair->s1;
    settlement.s2 = page.pair->s2;
    settlement.bound = page.pair->bound;
    settlement.from_position = page.from;
    if (!page.drained) settlement.position = page.position;
    std::set<std::uint64_t> keys;
    std::set<std::uint64_t> died;  // A relay sends nothing behind these.
    for (const EventView& event : page.events) {
      store::ParkedEvent one{
          .subscription = row_.id,
          .generation = generation_,
          .seq = event.seq,
          .id = event.id,
          .key = store::parked_key(event::key_hash(event.aggregate_type, event.aggregate_id),
                                   event.seq)};
      const bool behind = !keys.insert(one.key).second || !model_->is_released(one.key);
      const bool waits = died.contains(one.key) || (behind && chance(90));
      one.state = waits ? ParkedState::waiting : any_state();
      if (one.state == ParkedState::dead) died.insert(one.key);
      if (one.state != ParkedState::waiting) one.attempts = below(4);
      if (one.state == ParkedState::retrying && chance(40)) one.due_in = hours(1);
      if (one.state == ParkedState::running) one.worker = worker();
      settlement.parked.add(event::id_hash(one.id));
      events_.push_back({one.seq, one.id, one.key});
      model_->park(one, event, 0, now());
      say("park ", one.seq, " of key ", one.key % 1000, " as ", to_string(one.state));
      parked.push_back(one);
    }
    const auto written = progress_->append(
        {.settlements = std::span(&settlement, 1), .parked = parked}, store::Durability::eventual);
    ASSERT_TRUE(ok(written)) << said_;
    check_released(*written, parked);
  }

  template <class Rows>
  void check_released(const std::vector<store::ReleasedKey>& released, const Rows& rows) {
    std::set<std::uint64_t> expected;
    for (const auto& row : rows) {
      if (model_->is_released(row.key)) expected.insert(row.key);
    }
    std::set<std::uint64_t> keys;
    for (const auto& key : released) keys.insert(key.key);
    ASSERT_EQ(keys, expected) << said_;
  }

  /// Writes a result. Its version may be an old one, its event gone, or its id another one.
  void settle() {
    if (events_.empty()) return;
    const Written& event = any();
    const auto version = model_->version(event.key);
    store::RetryResult result{.subscription = row_.id,
                              .generation = generation_,
                              .seq = event.seq,
                              .id = chance(95) ? event.id : EventId::generate(),
                              .key = event.key,
                              .version = chance(75) ? version : version - 1,
                              .state = chance(40) ? std::nullopt : std::optional(any_state()),
                              .attempts = 1 + below(3),
                              .due_in = chance(50) ? milliseconds(0) : milliseconds(hours(1)),
                              .error = "no"};
    if (result.state == ParkedState::running) result.worker = worker();
    // The relay sends only the first event of a key that nobody runs.
    const auto row = model_->rows().find(event.seq);
    const bool is_sent = row != model_->rows().end() && row->second.state == ParkedState::retrying;
    if (result.state && !is_sent) result.version = version - 1;
    if (result.state == ParkedState::running && !is_sent) return;
    say("result of ", event.seq, ": ", result.state ? to_string(*result.state) : "delivered",
        ", version ", result.version, " of ", version);
    const std::vector<store::RetryResult> results(chance(10) ? 2 : 1, result);
    for (const auto& one : results) model_->settle(one, now());
    const auto written =
        progress_->append({.settlements = {}, .results = results}, store::Durability::eventual);
    ASSERT_TRUE(ok(written)) << said_;
    check_released(*written, results);
  }

  std::vector<std::int64_t> some() {
    std::set<std::int64_t> seqs;
    for (unsigned i = 0; i <= below(3); ++i) seqs.insert(any().seq);
    return {seqs.begin(), seqs.end()};
  }
  /// Retries one event at a time. In one command the order would not matter, since a key is judged
  /// when all its events live.
  void retry() {
    if (events_.empty()) return;
    const std::int64_t seq = any().seq;
    say("a person retries ", seq);
    model_->retry(seq, now());
    ASSERT_TRUE(ok(people_->retry(row_.id, std::vector{seq}, false))) << said_;
  }
  void discard() {
    if (events_.empty()) return;
    for (const std::int64_t seq : some()) {
      say("a person discards ", seq);
      model_->discard(seq, now());
      ASSERT_TRUE(ok(people_->discard(row_.id, std::vector{seq}, "anna", "a test"))) << said_;
    }
  }

  void end_run() {
    if (events_.empty()) return;
    const Written& event = any();
    const auto row = model_->rows().find(event.seq);
    store::TaskRunEnd end;
    end.result = {
        .subscription = row_.id,
        .seq = event.seq,
        .id = event.id,
        .key = event.key,
        .state = chance(50) ? std::nullopt
                            : std::optional(chance(70) ? ParkedState::retrying : ParkedState::dead),
        .attempts = 1 + below(3),
        .error = "no",
        .worker = worker()};
    end.token = row == model_->rows().end() ? 1 : row->second.token - (chance(80) ? 0 : 1);
    say("the run of ", event.seq,
        " ends: ", end.result.state ? to_string(*end.result.state) : "delivered", ", token ",
        end.token);
    (void)model_->end(end, now());
    ASSERT_TRUE(ok(runs_->end(std::span(&end, 1), {}))) << said_;
  }

  void claim() {
    const EventId claimer = worker();
    const auto claimed = runs_->claim(claimer, std::vector{row_.spec.name},
                                      std::vector{make_event("a").event_type}, 1);
    ASSERT_TRUE(ok(claimed)) << said_;
    std::vector<std::int64_t> seqs;
    for (const auto& task : claimed->tasks) seqs.push_back(task.event.seq);
    if (!seqs.empty()) say("claimed ", seqs.front());
    model_->claim(seqs, claimer);
  }

  std::mt19937 dice_;
  std::unique_ptr<test::LaneOwner> relay_;
  std::unique_ptr<store::Progress> progress_;
  std::unique_ptr<store::ParkedEvents> people_;
  std::unique_ptr<store::TaskRuns> runs_;
  std::int64_t generation_{0};
  bool dead_blocks_{false};
  store::SubscriptionRow row_;
  std::optional<sim::ParkedTable> model_;
  std::vector<Written> events_;
  const EventId workers_[2]{EventId::generate(), EventId::generate()};
};

INSTANTIATE_TEST_SUITE_P(Store, ParkingModel, ::testing::ValuesIn(backends()), backend_name);

TEST_P(ParkingModel, the_store_keeps_the_law_whatever_happens_in_whatever_order) {
  const int count = sequences();
  const unsigned first = count > 1000 ? std::random_device{}() % 1000000 : 1;
  for (int sequence = 0; sequence < count; ++sequence) {
    said_ = "seed " + std::to_string(first + static_cast<unsigned>(sequence)) + "\n";
    begin(first + static_cast<unsigned>(sequence));
    for (int done = 0; done < kSteps; ++done) {
      step();
      if (HasFatalFailure()) return;
      compare();
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace outbox::conformance
