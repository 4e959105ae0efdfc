// The tables `parked` and `parked_key`, under the rules that the store of SQLite applies, too
// (store/parking_law.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "relay/trust_deadline.hpp"
#include "store/parked.hpp"
#include "store/parking_law.hpp"
#include "store/settlement.hpp"
#include "store/tasks.hpp"

namespace outbox::sim {

class ParkedTable {
 public:
  struct Row {
    EventView event{};
    unsigned lane{0};
    std::uint64_t key{0};
    store::law::Facts facts{};
    bool slow{false};  ///< It was set aside while its send ran, and was not sent since.
    // What people see, which follows from the key's row:
    store::ParkedState state{store::ParkedState::retrying};
    std::size_t attempts{0};
    EventId worker{};  ///< Only for `running`.
    std::int64_t token{0};
    bool cancelled{false};  ///< A person has discarded it while it ran.
  };

  explicit ParkedTable(bool dead_blocks) : dead_blocks_(dead_blocks) {}
  void park(const store::ParkedEvent& event, const EventView& copied, unsigned lane,
            relay::TimePoint now);
  void settle(const store::RetryResult& result, relay::TimePoint now);
  /// Like end_runs(). Returns false if the run is over, or belongs to another worker.
  bool end(const store::TaskRunEnd& end, relay::TimePoint now);
  /// The `ready` rows of these types that a worker may claim, at most `limit` of them. claim()
  /// gives rows to the worker.
  [[nodiscard]] std::vector<std::int64_t> ready(std::span<const std::string> types,
                                                std::size_t limit) const;
  void claim(const std::vector<std::int64_t>& seqs, const EventId& worker);
  /// What a person does: retry() sends the event again, and discard() discards it. If it runs, it
  /// is discarded when its run has ended, unless it is done.
  void retry(std::int64_t seq, relay::TimePoint now);
  void discard(std::int64_t seq, relay::TimePoint now);
  [[nodiscard]] store::DueEvents due(relay::TimePoint now,
                                     store::LaneMask lanes = store::kAllLanes) const;
  [[nodiscard]] std::vector<store::AskedState> asked(std::span<const store::AskedRow> rows) const;
  [[nodiscard]] store::ParkedKeys keys(store::LaneMask lanes = store::kAllLanes) const;
  /// The version of the key's row; 0 if it has none.
  [[nodiscard]] std::int64_t version(std::uint64_t key) const {
    const auto found = keys_.find(key);
    return found == keys_.end() ? 0 : found->second.version;
  }
  /// Whether the key has nothing to do any more.
  [[nodiscard]] bool is_released(std::uint64_t key) const { return !keys_.contains(key); }
  /// Whether the event is dead, or stands behind a dead one that blocks.
  [[nodiscard]] bool rests(std::int64_t seq) const;
  [[nodiscard]] const std::map<std::int64_t, Row>& rows() const { return rows_; }
  [[nodiscard]] const std::set<std::int64_t>& delivered() const { return delivered_; }
  [[nodiscard]] const std::set<std::int64_t>& discarded() const { return discarded_; }
  [[nodiscard]] bool parks_twice() const { return parks_twice_; }

 private:
  using Key = std::optional<store::law::Key>;
  [[nodiscard]] Key take(std::uint64_t key) const;
  void put(std::uint64_t number, const Key& key);
  [[nodiscard]] std::optional<std::int64_t> first(std::uint64_t key) const;
  /// The first dead event that holds the key.
  [[nodiscard]] std::optional<std::int64_t> next_block(std::uint64_t key) const;
  [[nodiscard]] bool works(std::uint64_t key, store::LaneMask lanes) const;
  void remove(std::int64_t seq, bool by_person, relay::TimePoint now);
  void conclude(const store::RetryResult& result, std::int64_t version, relay::TimePoint now);

  bool dead_blocks_;
  std::map<std::int64_t, Row> rows_;
  std::map<std::uint64_t, store::law::Key> keys_;
  std::map<std::uint64_t, std::set<std::int64_t>> of_key_;
  std::set<std::int64_t> delivered_;
  std::set<std::int64_t> discarded_;
  bool parks_twice_{false};
};

}  // namespace outbox::sim
