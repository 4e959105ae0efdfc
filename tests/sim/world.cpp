#include "sim/world.hpp"

#include <algorithm>

#include "event/key.hpp"
#include "relay/retry_core.hpp"

namespace outbox::sim {

// ---- the log

void SimLog::begin_transaction() {
  const auto key = static_cast<unsigned>(random_.below(locks_.size()));
  if (locks_[key] || open_.size() > 20) return;
  locks_[key] = true;
  Transaction transaction{.key = key, .events = {}};
  const auto count = 1 + random_.below(3);
  for (std::uint64_t i = 0; i < count; ++i) {
    ++seq_;
    LoggedEvent event;
    event.key = "k" + std::to_string(key);
    texts_.push_back(event.key);
    event.view.seq = seq_;
    event.view.aggregate_type = "sim";
    event.view.aggregate_id = texts_.back();
    event.view.event_type = "Happened";
    for (unsigned byte = 0; byte < 8; ++byte) {
      event.view.id.bytes[byte] =
          static_cast<std::uint8_t>(static_cast<std::uint64_t>(seq_) >> (8 * byte));
    }
    transaction.events.push_back(events_.size());
    events_.push_back(event);
  }
  open_.push_back(std::move(transaction));
}

void SimLog::finish_transaction() {
  if (open_.empty()) return;
  const auto which = random_.below(open_.size());
  const Transaction transaction = open_[which];
  open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(which));
  locks_[transaction.key] = false;
  const bool commits = !random_.chance(15);
  if (commits) ++commits_;
  for (const std::size_t at : transaction.events) {
    if (commits) {
      events_[at].committed_at = commits_;
    } else {
      events_[at].rolled_back = true;
    }
  }
}

void SimLog::finish_all() {
  while (!open_.empty()) finish_transaction();
}

std::shared_ptr<const store::Page> SimLog::read(const store::Cursor& from, std::size_t rows) const {
  auto page = std::make_shared<store::Page>();
  store::Pair pair;
  pair.s1 = from.s1;
  pair.s2 = from.drained() ? std::to_string(commits_) : from.s2;
  pair.bound = from.drained() ? seq_ : from.bound;
  const std::uint64_t after = std::stoull(pair.s1);
  const std::uint64_t until = std::stoull(pair.s2);
  page->from = from.drained() ? 0 : from.position;
  page->position = page->from;
  page->drained = true;
  for (const LoggedEvent& event : events_) {
    if (event.committed_at <= after || event.committed_at > until || event.view.seq <= page->from)
      continue;
    if (page->events.size() == rows) {
      page->drained = false;
      break;
    }
    page->events.push_back(event.view);
    page->position = event.view.seq;
    page->bytes += 10;
  }
  page->pair = std::make_shared<const store::Pair>(pair);
  return page;
}

// ---- the sink

void SimSink::send(Token token, const EventView& event) { flying_.push_back({token, event.seq}); }

void SimSink::settle_front() {
  // A gated sink may finish in any order: the relay keeps one event per key in flight.
  const std::size_t which = gapless_ ? 0 : random_.below(flying_.size());
  const InFlight message = flying_[which];
  flying_.erase(flying_.begin() + static_cast<std::ptrdiff_t>(which));
  Outcome outcome;
  outcome.token = message.token;
  if (gapless_ && broken_) {
    outcome.kind = Outcome::Kind::retry;
  } else if (poison.contains(message.seq) || rejected_[message.seq] < rejections(message.seq)) {
    ++rejected_[message.seq];
    outcome.kind = Outcome::Kind::rejected;
    broken_ = true;
  } else if (random_.chance(fail_percent)) {
    outcome.kind = random_.chance(50) ? Outcome::Kind::retry : Outcome::Kind::unknown;
    if (outcome.kind == Outcome::Kind::unknown && random_.chance(50)) topic_.arrive(message.seq);
    broken_ = true;
  } else {
    topic_.arrive(message.seq);
    outcome.kind = Outcome::Kind::acked;
  }
  ready_.push_back(outcome);
}

void SimSink::step() {
  const auto count = random_.below(8);
  for (std::uint64_t i = 0; i < count && !flying_.empty(); ++i) settle_front();
}

std::vector<Outcome> SimSink::receive() { return std::exchange(ready_, {}); }

void SimSink::crash() {
  const auto arriving = flying_.empty() ? 0 : random_.below(flying_.size() + 1);
  for (std::uint64_t i = 0; i < arriving && !broken_; ++i) {
    if (poison.contains(flying_[i].seq) || rejections(flying_[i].seq) > 0) break;
    topic_.arrive(flying_[i].seq);
  }
  flying_.clear();
  ready_.clear();
}

int SimSink::rejections(std::int64_t seq) const {
  const std::uint64_t dice = splitmix64(static_cast<std::uint64_t>(seq) * 31);
  if (dice % 100 >= reject_percent) return 0;
  return (dice >> 32U) % 4 == 0 ? 1'000'000 : 1 + static_cast<int>((dice >> 40U) % 3);
}

// ---- parked events

void ParkedTable::park(const store::ParkedEvent& event, const std::string& key,
                       relay::TimePoint now) {
  parks_twice_ = parks_twice_ || rows_.contains(event.seq) || delivered_.contains(event.seq);
  rows_[event.seq] = {key, event.state, event.attempts, now + event.due_in};
  of_key_[key].insert(event.seq);
  order(key, now);
}

void ParkedTable::settle(const store::RetryResult& result, relay::TimePoint now) {
  const auto row = rows_.find(result.seq);
  if (row == rows_.end()) return;
  const std::string key = row->second.key;
  if (result.state) {
    row->second = {key, *result.state, result.attempts, now + result.due_in};
  } else {
    rows_.erase(row);
    of_key_[key].erase(result.seq);
    delivered_.insert(result.seq);
  }
  order(key, now);
}

void ParkedTable::order(const std::string& key, relay::TimePoint now) {
  bool first = true;
  for (const std::int64_t seq : of_key_[key]) {
    Row& row = rows_.at(seq);
    if (!blocks(row)) continue;
    if (first && row.state == store::ParkedState::waiting) {
      row.state = store::ParkedState::retrying;
      row.due = now;
    }
    if (!first && row.state == store::ParkedState::retrying)
      row.state = store::ParkedState::waiting;
    first = false;
  }
}

bool ParkedTable::rests(std::int64_t seq) const {
  const auto row = rows_.find(seq);
  if (row == rows_.end()) return false;
  if (row->second.state == store::ParkedState::dead) return true;
  const Row& first = rows_.at(*of_key_.at(row->second.key).begin());
  return dead_blocks_ && first.state == store::ParkedState::dead;
}

store::DueEvents ParkedTable::due(const std::deque<LoggedEvent>& log, relay::TimePoint now) const {
  store::DueEvents due;
  const auto add = [&](std::int64_t seq) {
    const Row& row = rows_.at(seq);
    due.rows.push_back({.event = log[static_cast<std::size_t>(seq - 1)].view,
                        .state = row.state,
                        .attempts = row.attempts});
  };
  for (const auto& [key, seqs] : of_key_) {
    bool chain = false;
    for (const std::int64_t seq : seqs) {
      const Row& row = rows_.at(seq);
      if (row.state == store::ParkedState::dead && dead_blocks_) break;
      if (row.state == store::ParkedState::waiting && chain) add(seq);
      if (row.state != store::ParkedState::retrying) continue;
      chain = row.due <= now;
      if (chain) {
        add(seq);
      } else {
        const auto in = std::chrono::ceil<std::chrono::milliseconds>(row.due - now);
        due.next_in = std::min(due.next_in.value_or(in), in);
      }
    }
  }
  return due;
}

// ---- the relay

namespace {

using relay::CoreOptions;
using relay::DeliveryCore;
using relay::RetryCore;
using relay::TimePoint;

/// Most events of a page.
constexpr std::size_t kPage = 9;
/// The tokens of retries begin here.
constexpr Token kRetryTokens = Token{1} << 57U;

struct SimRelay {
  SimRelay(Random& random, Topic& topic, const SimOptions& options, const store::Cursor& start,
           std::int64_t generation_)
      : state({.first = std::chrono::milliseconds(2), .longest = std::chrono::milliseconds(8)},
              options.seed),
        window({.events = options.window, .page_events = kPage}),
        core(core_options(options), start, state, window, gate),
        retries({.rules = rules(options),
                 .gapless = options.gapless,
                 .max_batch = 5,
                 .write_interval = std::chrono::milliseconds(5),
                 .first_token = kRetryTokens},
                state, gate),
        sink(random, topic, options.gapless),
        read(start),
        generation(generation_) {}

  static CoreOptions core_options(const SimOptions& options) {
    CoreOptions core;
    core.gapless = options.gapless;
    core.max_batch = 7;
    core.max_in_flight = 25;
    core.settle_events = options.lazy_settling ? 1000000 : 10;
    if (options.lazy_settling) core.settle_interval = std::chrono::hours(1000);
    if (options.reject_percent > 0) core.parking = rules(options);
    return core;
  }
  static relay::ParkingRules rules(const SimOptions& options) {
    SubscriptionSpec spec{.name = "sim", .sink = "custom"};
    spec.max_attempts = 5;
    spec.retry_base = std::chrono::milliseconds(3);
    spec.retry_cap = std::chrono::milliseconds(20);
    return {.policy = event::RetryPolicy(spec), .dead_blocks = options.dead_blocks};
  }

  relay::SinkState state;
  relay::Window window;
  relay::KeyGate gate;
  DeliveryCore core;
  RetryCore retries;
  SimSink sink;
  store::Cursor read;
  std::int64_t generation{0};
  DeliveryCore::Due writing;
  std::vector<store::RetryResult> results;
  bool reading{false};  ///< Parked events that are due.
  bool reads_after_write{false};
};

class World {
 public:
  explicit World(const SimOptions& options)
      : options_(options), random_(options.seed), log_(random_, options.keys) {
    relays_.push_back(make_relay());
  }

  SimResult run() {
    for (int step = 0; step < options_.steps && result_.broken.empty(); ++step) {
      one_step();
      check();
    }
    if (result_.broken.empty()) heal();
    result_.delivered = topic_.count.size();
    for (const auto& [seq, row] : parked_.rows())
      result_.dead += row.state == store::ParkedState::dead ? 1 : 0;
    for (const auto& [seq, count] : topic_.count)
      result_.duplicates += static_cast<std::uint64_t>(count - 1);
    for (const auto& event : log_.events()) result_.committed += event.committed_at != 0 ? 1 : 0;
    return result_;
  }

 private:
  std::unique_ptr<SimRelay> make_relay() {
    auto made = std::make_unique<SimRelay>(random_, topic_, options_, persisted_, ++generation_);
    made->sink.fail_percent = options_.fail_percent;
    made->sink.poison = poison_;
    made->sink.reject_percent = options_.reject_percent;
    for (const auto& [seq, row] : parked_.rows()) {
      if (parked_.blocks(row)) made->gate.add(key_of(seq));
    }
    made->retries.due_at(now_);
    return made;
  }

  [[nodiscard]] bool wanted(std::int64_t seq) const {
    return splitmix64(static_cast<std::uint64_t>(seq)) % 100 >= options_.filtered_percent;
  }

  [[nodiscard]] std::uint64_t key_of(std::int64_t seq) const {
    const EventView& view = log_.events()[static_cast<std::size_t>(seq - 1)].view;
    return event::key_hash(view.aggregate_type, view.aggregate_id);
  }

  void one_step() {
    now_ += std::chrono::milliseconds(1);
    for (int i = 0; i < 3; ++i) log_.begin_transaction();
    for (int i = 0; i < 3; ++i) log_.finish_transaction();
    if (options_.poison && poison_.empty() && log_.events().size() > 40) {
      poison_.insert(log_.events().back().view.seq + 3);
      for (auto& relay : relays_) relay->sink.poison = poison_;
    }
    for (auto& relay : relays_) drive(*relay);
    if (random_.chance(options_.crash_percent)) crash();
    if (random_.chance(options_.takeover_percent)) take_over();
    if (options_.store_loss_percent != 0 && random_.chance(options_.store_loss_percent))
      lose_store();
    if (relays_.size() > 1 && random_.chance(10)) bury_zombie();
  }

  void drive(SimRelay& relay) {
    DeliveryCore& core = relay.core;
    if (relay.window.has_room(1) && random_.chance(70)) {
      const auto page = log_.read(relay.read, 1 + random_.below(kPage));
      std::vector<std::uint8_t> wanted_flags;
      for (const auto& event : page->events) wanted_flags.push_back(wanted(event.seq) ? 1 : 0);
      relay.read = page->end();
      // Empty pairs are usually not passed to the core.
      if (!page->events.empty() || page->from != 0 || core.remembers() || random_.chance(5)) {
        relay.window.add(*page);
        core.page_read(page, wanted_flags, now_);
      }
    }
    if (relay.state.wants_open(now_)) {
      relay.sink.open();
      relay.state.opened({}, now_);
    }
    const auto sends = core.to_send(now_);
    const std::size_t taken = sends.empty() ? 0 : random_.below(sends.size() + 1);
    for (std::size_t i = 0; i < taken; ++i) relay.sink.send(sends[i].token, *sends[i].event);
    if (!sends.empty()) core.handed_over(taken);
    drive_retries(relay);
    relay.sink.step();
    take_outcomes(relay);
    if (relay.writing.empty()) {
      relay.writing = core.settle(now_);
      for (const auto& event : relay.writing.parked) relay.retries.due_at(now_ + event.due_in);
    }
    if (!relay.writing.empty() && random_.chance(60)) write(relay);
    if (relay.results.empty()) relay.results = relay.retries.results(now_);
    if (!relay.results.empty() && random_.chance(60)) write_results(relay);
    result_.stopped = result_.stopped || relay.state.mode() == relay::Mode::rejected;
  }

  void drive_retries(SimRelay& relay) {
    if (relay.retries.wants_load(now_) && random_.chance(80)) {
      relay.retries.load_asked();
      relay.reading = true;
      relay.reads_after_write = !relay.writing.empty() || !relay.results.empty();
    }
    // The store answers in the order in which it is asked.
    if (relay.reading && !relay.reads_after_write && random_.chance(60)) {
      relay.reading = false;
      relay.retries.loaded(parked_.due(log_.events(), now_), now_);
    }
    const auto sends = relay.retries.to_send();
    const std::size_t taken = sends.empty() ? 0 : random_.below(sends.size() + 1);
    for (std::size_t i = 0; i < taken; ++i) relay.sink.send(sends[i].token, *sends[i].event);
    if (!sends.empty()) relay.retries.handed_over(taken);
  }

  void write_results(SimRelay& relay) {
    if (relay.generation == generation_) {
      for (const auto& result : relay.results) {
        parked_.settle(result, now_);
        if (!result.state && !topic_.count.contains(result.seq))
          broke("a retry counts as delivered that never arrived");
      }
      relay.retries.written(now_);
    }  // else: it does not own the lanes, and its tenure is over
    relay.results.clear();
    relay.reads_after_write = relay.reads_after_write && !relay.writing.empty();
  }

  void take_outcomes(SimRelay& relay) {
    for (const Outcome& outcome : relay.sink.receive()) {
      result_.failures += outcome.kind == Outcome::Kind::acked ? 0 : 1;
      if (outcome.kind == Outcome::Kind::unknown || outcome.kind == Outcome::Kind::rejected)
        ++excuses_;
      if (outcome.token >= kRetryTokens) {
        relay.retries.outcome(outcome, now_);
      } else {
        relay.core.outcome(outcome, now_);
      }
    }
  }

  void write(SimRelay& relay, bool hears_of_it = true) {
    if (relay.generation == generation_) {
      store::Tally parked;
      for (const auto& row : relay.writing.rows) {
        account(row);
        parked += row.parked;
      }
      for (const auto& event : relay.writing.parked) {
        const auto& logged = log_.events()[static_cast<std::size_t>(event.seq - 1)];
        parked_.park(event, logged.key, now_);
        parked.count -= 1;
        parked.hash -= event::id_hash(event.id);
        ++result_.parked;
      }
      if (!(parked == store::Tally{})) broke("ledger: other events are parked than are counted");
      persisted_ = relay.writing.rows.back().end();
    }  // else: a zombie's row has a lower generation and loses
    relay.writing = {};
    relay.reads_after_write = false;
    if (hears_of_it) relay.core.settled();
  }

  /// The ledger: a row must start at the cursor, and its sums must be those of the events it covers.
  void account(const store::Settlement& row) {
    const bool starts_here = ledger_.drained()
                                 ? row.s1 == ledger_.s1 && row.from_position == 0
                                 : row.s2 == ledger_.s2 && row.from_position == ledger_.position;
    if (!starts_here) return broke("ledger: a row does not start at the cursor");
    store::Tally acked;
    store::Tally filtered;
    for (const auto& event : log_.events()) {
      if (event.committed_at <= std::stoull(row.s1) || event.committed_at > std::stoull(row.s2))
        continue;
      if (event.view.seq <= row.from_position || (row.position && event.view.seq > *row.position))
        continue;
      (wanted(event.view.seq) ? acked : filtered).add(event::id_hash(event.view.id));
    }
    store::Tally done = row.acked;
    done += row.parked;
    if (!(acked == done) || !(filtered == row.filtered)) broke("ledger: the sums differ");
    ledger_ = row.end();
  }

  void crash() {
    ++result_.crashes;
    allow_duplicates(*relays_.back());
    relays_.back()->sink.crash();
    relays_.back() = make_relay();
    ledger_ = persisted_;
  }

  /// The connection to the store breaks. What is in flight gets its outcome; what was being written may have been written,
  /// and the relay may have got the answer. The next run starts at the persisted cursor and remembers what was acked.
  void lose_store() {
    ++result_.store_losses;
    SimRelay& old = *relays_.back();
    old.core.stop_requested(now_);
    old.retries.stop_requested();
    old.state.stop_requested(false);
    while (old.state.in_flight() > 0) {
      old.sink.step();
      take_outcomes(old);
    }
    const bool hears_of_it = random_.chance(50);
    if (!old.writing.empty() && random_.chance(50)) write(old, hears_of_it);
    auto next = make_relay();
    for (const auto& event : old.core.unsettled_acks()) next->core.remember(event);
    relays_.back() = std::move(next);
    ledger_ = persisted_;
  }

  /// The old owner does not know yet and continues for a while.
  void take_over() {
    ++result_.takeovers;
    allow_duplicates(*relays_.back());
    relays_.push_back(make_relay());
    ledger_ = persisted_;
  }

  void bury_zombie() {
    allow_duplicates(*relays_.front());
    relays_.front()->sink.crash();
    relays_.erase(relays_.begin());
  }

  void allow_duplicates(const SimRelay& relay) {
    allowed_duplicates_ += 2 * relay.window.events() + 120;
  }

  void check() {
    check_order();
    check_cursor();
    if (parked_.parks_twice()) broke("an event is parked twice");
    std::uint64_t duplicates = 0;
    for (const auto& [seq, count] : topic_.count)
      duplicates += static_cast<std::uint64_t>(count - 1);
    if (result_.crashes + result_.takeovers == 0 &&
        duplicates > static_cast<std::uint64_t>(excuses_)) {
      broke("P5: duplicates without a crash or an unknown outcome");
    }
    if (duplicates > allowed_duplicates_ + static_cast<std::uint64_t>(excuses_))
      broke("P5: too many duplicates");
  }

  void check_order() {
    for (; checked_ < topic_.arrivals.size(); ++checked_) {
      const std::int64_t seq = topic_.arrivals[checked_];
      const auto& event = log_.events()[static_cast<std::size_t>(seq - 1)];
      if (event.committed_at == 0) return broke("P3: a ghost was delivered");
      if (!wanted(seq)) return broke("a filtered event was delivered");
      if (!first_seen_.insert(seq).second) continue;
      // All earlier committed and wanted events of the key must have arrived before.
      for (std::int64_t earlier = seq - 1; earlier > 0; --earlier) {
        const auto& before = log_.events()[static_cast<std::size_t>(earlier - 1)];
        if (before.key != event.key || before.committed_at == 0 || !wanted(earlier)) continue;
        if (is_dead(earlier) && !options_.dead_blocks) continue;
        if (!first_seen_.contains(earlier)) return broke("P4: out of order in key " + event.key);
        break;  // that one was checked when it arrived
      }
    }
  }

  [[nodiscard]] bool is_dead(std::int64_t seq) const {
    const auto row = parked_.rows().find(seq);
    return row != parked_.rows().end() && row->second.state == store::ParkedState::dead;
  }

  void check_cursor() {
    const std::uint64_t all = std::stoull(persisted_.s1);
    const std::uint64_t part = persisted_.drained() ? all : std::stoull(persisted_.s2);
    if (all == checked_cursor_.first && persisted_.position == checked_cursor_.second) return;
    checked_cursor_ = {all, persisted_.position};
    for (const auto& event : log_.events()) {
      if (event.committed_at == 0 || event.committed_at > part || !wanted(event.view.seq)) continue;
      const bool covered = event.committed_at <= all || event.view.seq <= persisted_.position;
      if (covered && !topic_.count.contains(event.view.seq) &&
          !parked_.rows().contains(event.view.seq))
        return broke("P2: the cursor passed an event that never arrived");
    }
  }

  /// No more faults: everything committed must arrive.
  void heal() {
    log_.finish_all();
    while (relays_.size() > 1) bury_zombie();
    for (int step = 0; step < 5000; ++step) {
      now_ += std::chrono::milliseconds(1);
      relays_.back()->sink.fail_percent = 0;
      drive(*relays_.back());
      check();
      if (!result_.broken.empty()) return;
      if (complete()) return;
      if (relays_.back()->state.mode() == relay::Mode::rejected) return;
    }
    broke("liveness: not everything arrived after the faults ended");
  }

  [[nodiscard]] bool complete() const {
    const DeliveryCore& core = relays_.back()->core;
    if (!core.idle() && !options_.lazy_settling) return false;
    // Nothing is pending, so nothing may count as abandoned.
    if (core.idle() && !core.unsettled_acks().empty()) return false;
    return std::all_of(
        log_.events().begin(), log_.events().end(), [this](const LoggedEvent& event) {
          return event.committed_at == 0 || !wanted(event.view.seq) ||
                 topic_.count.contains(event.view.seq) || parked_.rests(event.view.seq);
        });
  }

  void broke(const std::string& what) {
    if (result_.broken.empty()) result_.broken = what;
  }

  const SimOptions options_;
  Random random_;
  SimLog log_;
  Topic topic_;
  ParkedTable parked_{options_.dead_blocks};
  store::Cursor persisted_{.s1 = "0"};
  store::Cursor ledger_{persisted_};
  std::int64_t generation_{0};
  std::vector<std::unique_ptr<SimRelay>> relays_;
  std::set<std::int64_t> poison_;
  TimePoint now_{};
  std::size_t checked_{0};
  std::set<std::int64_t> first_seen_;
  std::pair<std::uint64_t, std::int64_t> checked_cursor_{0, 0};
  std::uint64_t allowed_duplicates_{0};
  int excuses_{0};
  SimResult result_;
};

}  // namespace

SimResult run(const SimOptions& options) { return World(options).run(); }

}  // namespace outbox::sim
