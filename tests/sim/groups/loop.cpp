#include "sim/groups/loop.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace outbox::sim {
namespace {

constexpr std::size_t kGroupPage = 9;

store::SubscriptionRow in_world(store::SubscriptionRow row, const GroupOptions& options) {
  row.spec.on_reject = options.parks() ? OnReject::park : OnReject::stop;
  row.spec.max_attempts = 5;
  row.spec.retry_base = std::chrono::milliseconds(3);
  row.spec.retry_cap = std::chrono::milliseconds(20);
  return row;
}

relay::LoopOptions in_milliseconds() {
  using std::chrono::milliseconds;
  relay::LoopOptions options;
  options.window = {.events = 40, .page_events = kGroupPage};
  options.settle_interval = milliseconds(6);
  options.settle_events = 8;
  options.pace = {.sink_pauses = {.first = milliseconds(2), .longest = milliseconds(8)},
                  .parked_at_once = 3,
                  .slow_after = milliseconds(10),
                  .failing = {.first = milliseconds(2), .longest = milliseconds(8)},
                  .look_at_runs = milliseconds(20),
                  .find_orphans = milliseconds(20),
                  .read_keys_again = milliseconds(10)};
  return options;
}

}  // namespace

/// The sink before the destination. It takes some of what is offered.
class SimLoop::Client : public Sink {
 public:
  explicit Client(SimLoop& loop) : loop_(loop), retained_(loop.retained_) {}

  [[nodiscard]] SinkTraits traits() const noexcept override {
    return {.name = "sim",
            .gapless = loop_.world_.options.gapless,
            .max_batch = 7,
            .max_in_flight = 25};
  }
  [[nodiscard]] Status open() override {
    loop_.acts("open its sink");
    return retained_.open();
  }
  [[nodiscard]] std::size_t send(std::span<const Message> messages) override {
    loop_.acts("send");
    loop_.note_acks();
    const std::size_t offered = loop_.world_.random.below(messages.size() + 1);
    std::size_t taken = 0;
    for (; taken < offered; ++taken) {
      loop_.check_send(messages[taken]);
      if (!take(messages[taken])) break;
    }
    return taken;
  }
  void receive(std::vector<Outcome>& outcomes) override {
    for (Outcome& outcome : retained_.receive()) {
      loop_.world_.trace("g", loop_.core_->holding().generation, " source ",
                         relay::LoopCore::source_of(outcome.token), " token ", outcome.token, ": ",
                         to_string(outcome.kind));
      if (outcome.kind != Outcome::Kind::acked) ++loop_.world_.result.failures;
      outcomes.push_back(std::move(outcome));
    }
  }
  void purge() override { retained_.purge(); }
  void close() noexcept override {}

 protected:
  /// False: it stays where it is.
  [[nodiscard]] virtual bool take(const Message& message) {
    EventView event = *message.event;
    event.seq = static_cast<std::int64_t>(number_of(event.id));
    if (retained_.sink.has_in_flight(event.seq))
      loop_.world_.checks.broke("an event is in flight twice");
    (void)retained_.sink.send(message.token, event);
    return true;
  }

  SimLoop& loop_;
  RetainedSink& retained_;
};

/// The sink before handlers.
class SimLoop::Handlers final : public Client, public sink::RunOwner {
 public:
  using Client::Client;

  [[nodiscard]] SinkTraits traits() const noexcept override {
    SinkTraits traits = Client::traits();
    traits.independent = true;
    return traits;
  }
  void follow(const sink::RunRules& rules) override {
    retained_.runner->follow(retained_.source, rules);
  }
  [[nodiscard]] std::chrono::milliseconds row_after() const override { return kRowAfter; }
  [[nodiscard]] bool is_slow(std::string_view /*event_type*/) const override { return false; }
  [[nodiscard]] EventId worker() const override { return retained_.runner->worker(); }
  [[nodiscard]] bool keep(Token token, const sink::KeptRun& run) override {
    return retained_.runner->keep(retained_.source, token, run);
  }
  [[nodiscard]] bool rows_changed() override {
    return retained_.runner->rows_changed(retained_.source);
  }

 private:
  [[nodiscard]] bool take(const Message& message) override {
    return retained_.runner->take(retained_.source, message, loop_.core_->holding().generation);
  }
};

/// Passes on what the feed of a replay reads.
class SimLoop::Reader final : public feed::PageConsumer {
 public:
  Reader(SimLoop& loop, std::size_t strand) : loop_(loop), strand_(strand) {}
  [[nodiscard]] bool has_room(std::size_t /*pages*/) const override { return loop_.has_room(); }
  void take_page(const std::shared_ptr<const store::Page>& page) override {
    loop_.take_page(strand_, page);
  }

 private:
  SimLoop& loop_;
  const std::size_t strand_;
};

SimLoop::SimLoop(GroupShared& world, RetainedSink& retained, const Links& links,
                 store::SubscriptionRow row, const store::Holding& holding,
                 const std::vector<store::Strand>& strands,
                 std::shared_ptr<relay::ReplayRun> replay)
    : world_(world), retained_(retained), links_(links) {
  relay::LoopOptions options = in_milliseconds();
  options.holding = holding;
  options.replay = std::move(replay);
  relay::LoopBeginning beginning{.strands = strands,
                                 .next_token = retained.next_token,
                                 .unsettled_acks = retained.acks,
                                 .retry_acks = retained.retry_acks};
  if (!options.replay) {
    beginning.parked = world.tables.parked(row.id).keys(holding.lanes);
    for (const auto& event : retained.acks) world.checks.remembers(row.id, number_of(event.id));
  }
  if (retained.runner)
    sink_ = std::make_unique<Handlers>(*this);
  else
    sink_ = std::make_unique<Client>(*this);
  row = in_world(std::move(row), world.options);
  LoopPorts& ports = *this;
  auto renderer = format::Renderer::create(row.spec).value();
  core_ = std::make_unique<relay::LoopCore>(std::move(row), std::move(renderer),
                                            std::move(beginning), options, *sink_, ports, now());
  for (std::size_t strand = 0; options.replay && strand < core_->strands(); ++strand)
    options.replay->feed->add(*readers_.emplace_back(std::make_unique<Reader>(*this, strand)));
}

SimLoop::~SimLoop() = default;

// ---- what the other threads tell it

/// Strand::accept() follows an idle log, too, but not in so short a world.
void SimLoop::take_page(std::size_t strand, const std::shared_ptr<const store::Page>& page) {
  const bool follows = page->drained && page->events.empty() && world_.random.chance(10);
  if (!core_->strand(strand).accept(*page, now()) && !follows) return;
  rung_ = rung_ || core_->needs_step(*page);
  core_->page_read(strand, page, now());
}

void SimLoop::written(const Job& job, const std::vector<std::uint64_t>& released) {
  core_->written(job.strand, released, now());
  rung_ = true;
}

void SimLoop::due_read(store::DueEvents due) {
  asks_for_due_ = false;
  core_->due_read(std::move(due), now());
  rung_ = true;
}

void SimLoop::keys_read(const store::ParkedKeys& keys) {
  asks_for_keys_ = false;
  core_->keys_read(keys);
  rung_ = true;
}

void SimLoop::parked_changed() {
  core_->parked_changed(now());
  rung_ = true;
}

void SimLoop::stop(relay::TimePoint::duration grace, bool settle) {
  core_->stop_requested(now() + grace, settle, now());
  rung_ = true;
}

// ---- the thread

/// Also now and then while it sleeps, with nothing in flight: then there must be nothing to do.
void SimLoop::step() {
  const bool wakes = std::exchange(rung_, false) || retained_.rings() || now() >= next_at_;
  const bool looks = !in_flight() && now() > stepped_at_ && world_.random.chance(20);
  if (!wakes && !looks) return;
  sleeps_ = !wakes;
  core_->step(now());
  sleeps_ = false;
  note_acks();
  next_at_ = core_->next_at(now());
  stepped_at_ = now();
}

void SimLoop::end() {
  (void)core_->is_over(relay::TimePoint::max());  // the grace period is over, too
  retained_.next_token = std::max(retained_.next_token, core_->next_token());
  retained_.acks = core_->unsettled_acks();
  retained_.retry_acks = core_->retry_acks();
}

bool SimLoop::differs(const store::SubscriptionRow& row, std::int64_t replay) const {
  const store::SubscriptionRow& served = core_->row();
  return row.state != store::SubscriptionState::active || row.left_out != served.left_out ||
         row.paused_types != served.paused_types || replay_differs(replay);
}

bool SimLoop::replay_differs(std::int64_t running) const {
  const std::int64_t here = replays() ? core_->replay()->replay.id : 0;
  if (running != 0 && running != here && running != core_->row().replay) return true;
  return replayed_ || (here != 0 && here != running);
}

// ---- what the core has done

/// That trust has ended is also seen when a step happens to find it; then the rest is settled.
void SimLoop::acts(const char* what) {
  if (sleeps_ && !distrusted_)
    world_.checks.broke(std::string("bells: a loop sleeps while it is to ") + what);
}

/// The server's clock may jump, and a clock that stood still is not to be trusted.
void SimLoop::check_lease() const {
  if (world_.options.jumps + world_.options.freezes > 0) return;
  if (!world_.tables.members().is_alive(links_.relay, world_.server_now(), kLease))
    world_.checks.broke("lease: a relay sends that may be taken for dead");
}

void SimLoop::check_send(const Message& message) {
  check_lease();
  const std::size_t number = number_of(message.event->id);
  const std::size_t source = relay::LoopCore::source_of(message.token);
  const WrittenEvent& event = world_.database.event(number);
  const std::int32_t subscription = core_->row().id;
  const std::int64_t generation = core_->holding().generation;
  world_.trace("g", generation, " offers event ", number, " (seq ", message.event->seq, ", ",
               message.event->aggregate_id, ") of subscription ", subscription, ", source ", source,
               " token ", message.token);
  if (replays())
    world_.checks.replays(event, number, generation);
  else if (source == relay::LoopCore::kRetries)
    world_.checks.sent_again(subscription, event, number, generation, acked_retries_);
  else
    world_.checks.sent(subscription, event, number, generation, acked_);
}

void SimLoop::note_acks() {
  for (const auto& ack : core_->unsettled_acks()) acked_.insert(number_of(ack.id));
  for (const auto& ack : core_->retry_acks()) acked_retries_.insert(number_of(ack.id));
}

/// What takes long is set aside when a step happens to find it: no time is named for that.
void SimLoop::write(Batch batch, std::optional<std::size_t> strand) {
  if (batch.parked.empty()) acts(strand ? "write a settlement" : "write results of retries");
  for (const auto& progress : batch.replays) {
    world_.result.replayed += static_cast<std::uint64_t>(progress.sent);
    world_.result.skipped += progress.skips.size();
  }
  links_.jobs.push_back({.strand = strand, .batch = std::move(batch)});
}

void SimLoop::read_due(std::size_t /*besides*/, const std::vector<store::AskedRow>& asked) {
  acts("read what is due");
  asks_for_due_ = true;
  asked_ = asked;
}

void SimLoop::read_keys() {
  acts("read keys");
  asks_for_keys_ = true;
}

}  // namespace outbox::sim
