#include "sim/relay.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <string_view>
#include <vector>

#include "event/key.hpp"

namespace outbox::sim {
namespace {

using relay::CoreOptions;

/// The most events of a page.
constexpr std::size_t kPage = 9;
/// The tokens of retries begin here.
constexpr Token kRetryTokens = Token{1} << 57U;

relay::ParkingRules rules() {
  SubscriptionSpec spec{.name = "sim", .sink = "custom"};
  spec.max_attempts = 5;
  spec.retry_base = std::chrono::milliseconds(3);
  spec.retry_cap = std::chrono::milliseconds(20);
  return {
      .policy = subscription::RetryPolicy(spec),
      .max_at_once = 3,
      .slow_after = std::chrono::milliseconds(10),
      .failing = {.first = std::chrono::milliseconds(2), .longest = std::chrono::milliseconds(8)}};
}

CoreOptions core_options(const SimOptions& options, const SimRelay* before) {
  CoreOptions core;
  if (before != nullptr) core.first_token = before->core.next_token();
  core.gapless = options.gapless;
  core.max_batch = 7;
  core.max_in_flight = 25;
  core.settle_events = options.lazy_settling ? 1000000 : 10;
  if (options.lazy_settling) core.settle_interval = std::chrono::hours(1000);
  if (options.reject_percent + options.refuse_percent + options.sick_percent +
          options.slow_percent >
      0)
    core.parking = rules();
  return core;
}

}  // namespace

SimRelay::SimRelay(Environment& world, const SimRelay* before)
    : state({.first = std::chrono::milliseconds(2), .longest = std::chrono::milliseconds(8)},
            world.options.seed),
      window({.events = world.options.window, .page_events = kPage}),
      core(core_options(world.options, before), world.persisted, state, window, gate),
      retries({.rules = rules(),
               .gapless = world.options.gapless,
               .max_batch = 5,
               .write_interval = std::chrono::milliseconds(5),
               .first_token = before == nullptr ? kRetryTokens : before->retries.next_token(),
               .keys_in_flight = [this](auto& keys) { core.add_keys_in_flight(keys); }},
              state, gate),
      sink(world.random, world.topic, world.options.gapless),
      world_(world),
      generation_(++world.generation),
      read_(world.persisted) {
  sink.fail_percent = world.options.fail_percent;
  sink.poison = world.poison;
  sink.reject_percent = world.options.reject_percent;
  sink.refuse_percent = world.options.refuse_percent;
  sink.sick_percent = world.options.sick_percent;
  sink.slow_percent = world.options.slow_percent;
  sink.outages.go_down(world.down_for > 0);
  gate.replace_stored(world.parked.keys());
  retries.due_at(world.now);
  sink.lie_percent = world.options.lie_percent;
  if (before == nullptr) return;
  sink.report_late(before->sink);
  for (const auto& event : before->core.unsettled_acks()) core.remember(event);
  for (const auto& event : before->retries.unsettled_acks()) retries.remember(event);
}

void SimRelay::drive() {
  read_page();
  if (state.wants_open(world_.now)) {
    sink.open();
    state.opened({}, world_.now);
  }
  send();
  drive_retries();
  sink.step();
  take_outcomes();
  if (writing_.empty()) {
    writing_ = core.settle(world_.now);
    for (const auto& event : writing_.parked) retries.due_at(world_.now + event.due_in);
  }
  if (!writing_.empty() && world_.random.chance(60)) write(true);
  if (results_.empty()) results_ = retries.results(world_.now);
  if (!results_.empty() && world_.random.chance(60)) write_results(true);
  if (state.mode() == relay::Mode::rejected) world_.result.stopped = 1;
}

void SimRelay::read_page() {
  if (!window.has_room(1) || !world_.random.chance(70)) return;
  const auto page = world_.log.read(read_, 1 + world_.random.below(kPage));
  std::vector<std::uint8_t> wanted;
  for (const auto& event : page->events) wanted.push_back(world_.options.wanted(event.seq) ? 1 : 0);
  read_ = page->end();
  if (!page->events.empty())
    world_.trace("g", generation_, " reads ", page->events.size(), " events up to seq ",
                 page->position, " of (", page->pair->s1, ", ", page->pair->s2, "]");
  // Empty pairs are usually not passed to the core.
  if (!page->events.empty() || page->from != 0 || core.remembers() || world_.random.chance(5)) {
    window.add(*page);
    core.page_read(page, wanted, world_.now);
  }
}

void SimRelay::send() {
  const auto sends = core.to_send(world_.now);
  if (sends.empty()) return;
  const std::size_t taken = world_.random.below(sends.size() + 1);
  // Events behind a refused one of their key are kept back, as Offering does it. For a sink that is
  // not gapless no two events of a key are among the sends.
  std::set<std::string_view> refused;
  std::vector<Token> kept_back;
  for (const auto& send : sends.first(taken)) {
    const std::string_view key = send.event->aggregate_id;
    if (refused.contains(key)) {
      kept_back.push_back(send.token);
    } else if (!hand_over(send) && !key.empty()) {
      refused.insert(key);
    }
  }
  core.handed_over(taken);
  for (const Token token : kept_back) core.kept_back(token, world_.now);
}

/// A relay that has lost its lanes and does not know it may also read rows of its successor and
/// send their events, so it is not checked.
bool SimRelay::hand_over(const relay::DeliveryCore::Send& send) {
  const EventView& event = *send.event;
  world_.trace("g", generation_, " sends seq ", event.seq, " of ", event.aggregate_id, ", token ",
               send.token);
  if (owns_lanes() && sink.has_in_flight(event.seq))
    world_.checks.broke("an event is in flight twice");
  const bool taken = sink.send(send.token, event);
  world_.result.refused += taken ? 0 : 1;
  return taken;
}

void SimRelay::drive_retries() {
  if (retries.wants_load(world_.now) && world_.random.chance(80)) {
    retries.load_asked();
    loading_ = true;
    loads_after_write_ = !writing_.empty() || !results_.empty();
  }
  // The store answers in the order in which it is asked.
  if (loading_ && !loads_after_write_ && world_.random.chance(60)) {
    loading_ = false;
    store::DueEvents due = world_.parked.due(world_.now);
    due.asked = world_.parked.asked(retries.asked());
    retries.loaded(std::move(due), world_.now);
  }
  const auto sends = retries.to_send(world_.now);
  if (sends.empty()) return;
  const std::size_t taken = world_.random.below(sends.size() + 1);
  for (const auto& send : sends.first(taken)) (void)hand_over(send);
  retries.handed_over(taken);
}

void SimRelay::take_outcomes() {
  for (const Outcome& outcome : sink.receive()) {
    world_.trace("g", generation_, " token ", outcome.token, ": ", to_string(outcome.kind));
    world_.result.failures += outcome.kind == Outcome::Kind::acked ? 0 : 1;
    const bool rejected = outcome.kind == Outcome::Kind::rejected && !outcome.unsent;
    if (outcome.kind == Outcome::Kind::unknown || rejected) world_.checks.excuse_duplicate();
    if (outcome.token >= kRetryTokens) {
      retries.outcome(outcome, world_.now);
    } else {
      core.outcome(outcome, world_.now);
    }
  }
}

void SimRelay::write(bool hears_of_it) {
  for (const auto& row : writing_.rows)
    world_.trace("g", generation_, " settles (", row.s1, ", ", row.s2, "] from ", row.from_position,
                 " to ", row.position.value_or(-1), ": acked ", row.acked.count, ", parked ",
                 row.parked.count, owns_lanes() ? "" : ", void");
  if (owns_lanes()) {
    store::Tally parked;
    for (const auto& event : writing_.parked) {
      park(event);
      parked.add(event::id_hash(event.id));
    }
    store::Tally counted;
    for (const auto& row : writing_.rows) {
      world_.checks.account(row);
      counted += row.parked;
    }
    if (!(parked == counted))
      world_.checks.broke("ledger: other events are parked than are counted");
    world_.persisted = writing_.rows.back().end();
  }  // otherwise this is a zombie, whose row has a lower generation and loses
  loads_after_write_ = false;
  const relay::DeliveryCore::Due written = std::exchange(writing_, {});
  if (!hears_of_it) return;
  core.settled();
  if (owns_lanes()) release_keys(written.parked);
}

void SimRelay::park(const store::ParkedEvent& event) {
  SimResult& result = world_.result;
  world_.trace("g", generation_, " parks seq ", event.seq, " as ", store::to_string(event.state),
               ", attempts ", event.attempts);
  if (event.attempts > 0 && sink.outages.explain(event.seq))
    world_.checks.broke("P6: an outage parked an event");
  const bool slow = event.state == store::ParkedState::retrying && event.attempts == 0;
  result.slow += slow ? 1 : 0;
  const bool rejected = sink.rejections(event.seq) + sink.refusals(event.seq) > 0;
  result.blamed += event.attempts > 0 && !rejected ? 1 : 0;
  if (event.state == store::ParkedState::retrying && is_behind_another(event))
    world_.checks.broke("P4: an event is to be retried that is behind another one of its key");
  ++result.parked;
  world_.parked.park(event, world_.log.at(event.seq).view, 0, world_.now);
}

bool SimRelay::is_behind_another(const store::ParkedEvent& event) const {
  const auto& rows = world_.parked.rows();
  return std::any_of(rows.begin(), rows.lower_bound(event.seq), [&](const auto& row) {
    return row.second.key == event.key && !row.second.facts.dead;
  });
}

void SimRelay::write_results(bool hears_of_it) {
  if (owns_lanes()) {
    for (const auto& result : results_) {
      check_attempts(result);
      world_.parked.settle(result, world_.now);
      world_.trace(
          "g", generation_, " parked seq ", result.seq,
          result.state ? std::string(": ") + store::to_string(*result.state) : ": delivered");
      if (!result.state && !world_.topic.has(result.seq))
        world_.checks.broke("a retry counts as delivered that never arrived");
    }
    if (hears_of_it) {
      release_keys(results_);
      retries.written(world_.now);
    }
  }  // otherwise its tenure is over
  results_.clear();
  loads_after_write_ = loads_after_write_ && !writing_.empty();
}

/// Releases the keys that have no row any more, as the store reports them.
template <class Rows>
void SimRelay::release_keys(const Rows& rows) {
  for (const auto& row : rows) {
    if (world_.parked.is_released(row.key)) gate.released(relay::gate_key(row.key, row.seq));
  }
}

void SimRelay::check_attempts(const store::RetryResult& result) {
  const auto row = world_.parked.rows().find(result.seq);
  if (row == world_.parked.rows().end()) return;
  if (!result.state) {
    world_.result.late += row->second.slow ? 1 : 0;
  } else if (result.attempts > row->second.attempts && sink.outages.explain(result.seq)) {
    world_.checks.broke("P6: an outage counted an attempt");
  }
}

void SimRelay::lose_store() {
  core.stop_requested(world_.now);
  retries.stop_requested();
  state.stop_requested(false);
  const bool waits = world_.random.chance(70);
  for (int step = 0; waits && state.in_flight() > 0; ++step) {
    if (step > 10000) return world_.checks.broke("liveness: the sink owes an outcome");
    sink.step();
    take_outcomes();
  }
  sink.purge();
  take_outcomes();
  const bool hears_of_it = world_.random.chance(50);
  if (!writing_.empty() && world_.random.chance(50)) write(hears_of_it);
  if (!results_.empty() && world_.random.chance(50)) write_results(hears_of_it);
}

}  // namespace outbox::sim
