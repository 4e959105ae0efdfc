#include "sim/groups/loop.hpp"

#include <algorithm>
#include <chrono>

namespace outbox::sim {
namespace {

constexpr unsigned kStrandShift = 57;
constexpr Token kTokenMask = (Token{1} << kStrandShift) - 1;
constexpr std::size_t kPage = 9;

}  // namespace

SimLoop::SimLoop(GroupShared& world, RetainedSink& retained, const store::Holding& holding,
                 const std::vector<store::Strand>& strands, bool gapless)
    : world_(world),
      retained_(retained),
      holding_(holding),
      state_({.first = std::chrono::milliseconds(2), .longest = std::chrono::milliseconds(8)},
             world.options.seed),
      window_({.events = 40, .page_events = kPage}) {
  relay::CoreOptions core;
  core.row.subscription = kSubscription;
  core.row.generation = holding.generation;
  core.gapless = gapless;
  core.max_batch = 7;
  core.max_in_flight = 25;
  core.settle_events = 8;
  core.settle_interval = std::chrono::milliseconds(6);
  core.first_token = retained.next_token;
  for (const store::Strand& strand : strands) {
    core.row.lanes = strand.lanes;
    cores_.push_back(
        std::make_unique<relay::DeliveryCore>(core, strand.cursor, state_, window_, gate_));
    for (const auto& event : retained.acks) cores_.back()->remember(event);
  }
}

bool SimLoop::must_see(std::size_t strand, const store::Page& page) const {
  if (!page.events.empty() || (page.drained && page.from != 0)) return true;
  if ((meeting_ || cores_[strand]->remembers()) && page.drained) return true;
  return page.drained && world_.random.chance(10);
}

void SimLoop::take_page(std::size_t strand, const std::shared_ptr<const store::Page>& page,
                        relay::TimePoint now) {
  if (!must_see(strand, *page)) return;
  window_.add(*page);
  std::vector<std::uint8_t> wanted;
  for (const EventView& event : page->events)
    wanted.push_back(world_.database.event(GroupShared::number_of(event.id)).wanted ? 1 : 0);
  cores_[strand]->page_read(page, wanted, now);
  meeting_ = false;
}

void SimLoop::step(relay::TimePoint now, bool trusted, std::vector<Job>& jobs) {
  take_outcomes(now);
  if (state_.wants_open(now)) {
    retained_.sink.open();
    state_.opened({}, now);
  }
  for (std::size_t strand = 0; trusted && strand < cores_.size(); ++strand) send(strand, now);
  for (std::size_t strand = 0; strand < cores_.size(); ++strand) {
    auto due = cores_[strand]->settle(now);
    if (!due.empty()) jobs.push_back({.strand = strand, .rows = std::move(due.rows)});
  }
  bring_strands_together();
}

void SimLoop::send(std::size_t strand, relay::TimePoint now) {
  const auto sends = cores_[strand]->to_send(now);
  if (sends.empty()) return;
  const std::size_t taken = world_.random.below(sends.size() + 1);
  for (std::size_t i = 0; i < taken; ++i) {
    EventView event = *sends[i].event;
    const std::size_t number = GroupShared::number_of(event.id);
    world_.trace("g", holding_.generation, " sends event ", number, " (seq ", event.seq, ", ",
                 event.aggregate_id, ")");
    world_.checks.sent(world_.database.event(number), number, holding_.generation, world_.tables,
                       acked_);
    event.seq = static_cast<std::int64_t>(number);
    retained_.sink.send(static_cast<Token>(strand) << kStrandShift | sends[i].token, event);
  }
  cores_[strand]->handed_over(taken);
}

void SimLoop::take_outcomes(relay::TimePoint now) {
  for (Outcome& outcome : retained_.sink.receive()) {
    const auto strand = static_cast<std::size_t>(outcome.token >> kStrandShift);
    outcome.token &= kTokenMask;
    if (outcome.kind != Outcome::Kind::acked) ++world_.result.failures;
    if (strand >= cores_.size()) continue;
    cores_[strand]->outcome(outcome, now);
    for (const auto& ack : cores_[strand]->unsettled_acks())
      acked_.insert(GroupShared::number_of(ack.id));
  }
}

void SimLoop::stop(relay::TimePoint now, bool in_order) {
  for (const auto& core : cores_) core->stop_requested(now);
  state_.stop_requested(in_order);
}

bool SimLoop::finished() const {
  return state_.in_flight() == 0 && std::all_of(cores_.begin(), cores_.end(),
                                                [](const auto& core) { return core->finished(); });
}

void SimLoop::end(relay::TimePoint now) {
  if (state_.in_flight() > 0) {
    retained_.sink.purge();
    take_outcomes(now);
  }
  retained_.acks.clear();
  for (const auto& core : cores_) {
    const auto acks = core->unsettled_acks();
    retained_.acks.insert(retained_.acks.end(), acks.begin(), acks.end());
    retained_.next_token = std::max(retained_.next_token, core->next_token());
  }
}

bool SimLoop::idle() const {
  return std::all_of(cores_.begin(), cores_.end(), [](const auto& core) { return core->idle(); });
}

void SimLoop::bring_strands_together() {
  if (cores_.size() < 2) return;
  const bool resting = state_.mode() == relay::Mode::delivering && window_.events() == 0 && idle();
  const store::Cursor& first = cores_.front()->done();
  const bool together = resting && first.drained() &&
                        std::all_of(cores_.begin(), cores_.end(),
                                    [&](const auto& core) { return core->done() == first; });
  meeting_ = resting && !together;
  could_merge_ = together;
}

}  // namespace outbox::sim
