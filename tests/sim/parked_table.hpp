// The table of parked events, by the rules of store/*/parking.cpp: the first row of a key is retried, the others wait behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "relay/trust_deadline.hpp"
#include "store/cursor.hpp"
#include "store/parked.hpp"
#include "store/task_runs.hpp"

namespace outbox::sim {

class ParkedTable {
 public:
  struct Row {
    EventView event{};
    unsigned lane{0};
    store::ParkedState state{store::ParkedState::retrying};
    std::size_t attempts{0};
    relay::TimePoint due{};
    EventId worker{};  ///< Of `running`.
    std::int64_t token{0};
    bool cancelled{false};  ///< A person has discarded it while it ran.
    bool slow{false};       ///< It was set aside while its send ran, and not sent since.

    [[nodiscard]] std::string key() const { return std::string(event.aggregate_id); }
  };

  explicit ParkedTable(bool dead_blocks) : dead_blocks_(dead_blocks) {}
  void park(const store::ParkedEvent& event, const EventView& copied, unsigned lane,
            relay::TimePoint now);
  void settle(const store::RetryResult& result, relay::TimePoint now);
  /// end_runs(). False: it is over, or another one's.
  bool end(const store::TaskRunEnd& end, relay::TimePoint now);
  /// `ready` rows of these types that a worker may claim, at most so many; and that it claims them.
  [[nodiscard]] std::vector<std::int64_t> ready(std::span<const std::string> types,
                                                std::size_t limit) const;
  void claim(const std::vector<std::int64_t>& seqs, const EventId& worker);
  /// What a person does: sends it again, or discards it; one that runs when its run has ended, unless it is done.
  void retry(std::int64_t seq, relay::TimePoint now);
  void discard(std::int64_t seq, relay::TimePoint now);
  [[nodiscard]] store::DueEvents due(relay::TimePoint now,
                                     store::LaneMask lanes = store::kAllLanes) const;
  [[nodiscard]] std::vector<store::RunningRow> running(const std::vector<std::int64_t>& seqs) const;
  [[nodiscard]] bool blocks(const Row& row) const {
    return row.state != store::ParkedState::dead || dead_blocks_;
  }
  /// Dead, or behind a dead one that blocks.
  [[nodiscard]] bool rests(std::int64_t seq) const;
  [[nodiscard]] const std::map<std::int64_t, Row>& rows() const { return rows_; }
  [[nodiscard]] const std::set<std::int64_t>& delivered() const { return delivered_; }
  [[nodiscard]] const std::set<std::int64_t>& discarded() const { return discarded_; }
  [[nodiscard]] bool parks_twice() const { return parks_twice_; }

 private:
  void wait_behind(std::int64_t seq);
  void order(const std::string& key, relay::TimePoint now);
  void remove(std::int64_t seq, relay::TimePoint now);

  bool dead_blocks_;
  std::map<std::int64_t, Row> rows_;
  std::map<std::string, std::set<std::int64_t>> of_key_;
  std::set<std::int64_t> delivered_;
  std::set<std::int64_t> discarded_;
  bool parks_twice_{false};
};

}  // namespace outbox::sim
