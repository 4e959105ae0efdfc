// A small world for the delivery core: a log with transactions that commit late, a sink that fails, relays that crash and
// continue as zombies, and events that it rejects for a while or for good. One seed decides everything. After every step the
// promises are checked against the world's own
// records (P2 no loss, P3 no ghost, P4 order per key, P5 few duplicates, and the ledger).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "relay/delivery_core.hpp"
#include "store/parked.hpp"

namespace outbox::sim {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() { return splitmix64(state_++); }
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  bool chance(unsigned percent) { return below(100) < percent; }

 private:
  std::uint64_t state_;
};

struct LoggedEvent {
  EventView view;
  std::string key;
  std::uint64_t committed_at{0};  ///< Place in the order of commits; 0: not committed (yet).
  bool rolled_back{false};
  bool wanted{true};
};

/// Transactions take their key's lock, then a seq, and commit or roll back some steps later. A snapshot is a number of
/// commits.
class SimLog {
 public:
  explicit SimLog(Random& random, unsigned keys) : random_(random), locks_(keys, false) {}
  void begin_transaction();
  void finish_transaction();
  void finish_all();
  [[nodiscard]] std::uint64_t commits() const { return commits_; }
  [[nodiscard]] const std::deque<LoggedEvent>& events() const { return events_; }
  [[nodiscard]] std::shared_ptr<const store::Page> read(const store::Cursor& from,
                                                        std::size_t rows) const;

 private:
  struct Transaction {
    unsigned key{0};
    std::vector<std::size_t> events;
  };
  Random& random_;
  std::vector<bool> locks_;
  std::vector<Transaction> open_;
  std::deque<LoggedEvent> events_;
  std::deque<std::string> texts_;
  std::int64_t seq_{0};
  std::uint64_t commits_{0};
};

/// The destination: what arrived, in order.
struct Topic {
  std::vector<std::int64_t> arrivals;
  std::map<std::int64_t, int> count;
  void arrive(std::int64_t seq) {
    arrivals.push_back(seq);
    ++count[seq];
  }
};

/// A client of the topic that loses, delays and reorders outcomes, but keeps the no-gap rule when its traits claim it.
class SimSink {
 public:
  SimSink(Random& random, Topic& topic, bool gapless)
      : random_(random), topic_(topic), gapless_(gapless) {}
  void send(Token token, const EventView& event);
  /// One step at the destination; outcomes may become ready.
  void step();
  [[nodiscard]] std::vector<Outcome> receive();
  void open() { broken_ = false; }
  /// The process dies: what was in flight may arrive, in order, without a gap.
  void crash();
  unsigned fail_percent{0};
  std::set<std::int64_t> poison;  ///< These are rejected.
  /// So many of 100 events are rejected: the first times, or for good.
  unsigned reject_percent{0};

  /// How often the event is rejected.
  [[nodiscard]] int rejections(std::int64_t seq) const;

 private:
  struct InFlight {
    Token token{0};
    std::int64_t seq{0};
  };
  void settle_front();
  Random& random_;
  Topic& topic_;
  bool gapless_;
  bool broken_{false};
  std::deque<InFlight> flying_;
  std::vector<Outcome> ready_;
  std::map<std::int64_t, int> rejected_;
};

/// The table of parked events.
class ParkedTable {
 public:
  struct Row {
    std::string key;
    store::ParkedState state{store::ParkedState::retrying};
    std::size_t attempts{0};
    relay::TimePoint due{};
  };

  explicit ParkedTable(bool dead_blocks) : dead_blocks_(dead_blocks) {}
  void park(const store::ParkedEvent& event, const std::string& key, relay::TimePoint now);
  void settle(const store::RetryResult& result, relay::TimePoint now);
  [[nodiscard]] store::DueEvents due(const std::deque<LoggedEvent>& log,
                                     relay::TimePoint now) const;
  [[nodiscard]] bool blocks(const Row& row) const {
    return row.state != store::ParkedState::dead || dead_blocks_;
  }
  /// Dead, or behind a dead one that blocks.
  [[nodiscard]] bool rests(std::int64_t seq) const;
  [[nodiscard]] const std::map<std::int64_t, Row>& rows() const { return rows_; }
  [[nodiscard]] const std::set<std::int64_t>& delivered() const { return delivered_; }
  [[nodiscard]] bool parks_twice() const { return parks_twice_; }

 private:
  void order(const std::string& key, relay::TimePoint now);

  const bool dead_blocks_;
  std::map<std::int64_t, Row> rows_;
  std::map<std::string, std::set<std::int64_t>> of_key_;
  std::set<std::int64_t> delivered_;
  bool parks_twice_{false};
};

struct SimOptions {
  std::uint64_t seed{1};
  int steps{600};
  bool gapless{true};
  unsigned keys{6};
  unsigned crash_percent{1};
  unsigned takeover_percent{1};
  unsigned fail_percent{3};
  unsigned store_loss_percent{
      0};  ///< The connection breaks; the relay continues with what it remembers.
  unsigned filtered_percent{10};
  bool poison{false};  ///< One event is rejected for good, which stops the subscription.
  /// So many of 100 events are rejected, some of them for good; they are parked.
  unsigned reject_percent{0};
  bool dead_blocks{false};
  std::size_t window{60};
  /// By count and interval a settlement would never be due.
  bool lazy_settling{false};
};

struct SimResult {
  std::string broken;  ///< Empty: every promise held at every step.
  std::uint64_t committed{0};
  std::uint64_t delivered{0};
  std::uint64_t duplicates{0};
  int crashes{0};
  int takeovers{0};
  int store_losses{0};
  int failures{0};
  bool stopped{false};  ///< By a rejected event.
  std::uint64_t parked{0};
  std::uint64_t dead{0};
};

[[nodiscard]] SimResult run(const SimOptions& options);

}  // namespace outbox::sim
