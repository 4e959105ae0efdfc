// Compares the promises with the world's own records after every step: P2 no loss, P3 no ghost, P4
// order per key, P5 few duplicates, and the ledger.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/log.hpp"
#include "sim/options.hpp"
#include "sim/parked_table.hpp"
#include "sim/sink.hpp"
#include "store/settlement.hpp"

namespace outbox::sim {

class Checks {
 public:
  Checks(const SimOptions& options, const SimLog& log, const Topic& topic,
         const ParkedTable& parked)
      : options_(options), log_(log), topic_(topic), parked_(parked) {}

  /// Call it after each step. `steady` says that no relay has died or lost its lanes.
  void step(bool steady);
  /// A row must start at the cursor, its sums must be those of the events it covers, and each of
  /// them must have arrived.
  void account(const store::Settlement& row);
  /// Another owner begins at the persisted cursor.
  void ledger_from(const store::Cursor& cursor) { ledger_ = cursor; }
  void allow_duplicates(std::uint64_t events) { allowed_duplicates_ += events; }
  /// Call it for an outcome that leaves in doubt whether the event arrived.
  void excuse_duplicate() { ++excuses_; }

  void broke(const std::string& what) {
    if (broken_.empty()) broken_ = what;
  }
  [[nodiscard]] const std::string& broken() const { return broken_; }

 private:
  void check_order();
  void check_earlier(std::int64_t seq);
  [[nodiscard]] bool has_arrived(std::int64_t seq) const {
    return static_cast<std::size_t>(seq) < arrived_.size() &&
           arrived_[static_cast<std::size_t>(seq)];
  }
  [[nodiscard]] bool is_dead(std::int64_t seq) const;

  const SimOptions& options_;
  const SimLog& log_;
  const Topic& topic_;
  const ParkedTable& parked_;
  store::Cursor ledger_{.s1 = "0"};
  std::size_t checked_{0};
  std::vector<bool> arrived_;  ///< Whether each event arrived, by seq.
  std::uint64_t allowed_duplicates_{0};
  std::uint64_t excuses_{0};
  std::string broken_;
};

}  // namespace outbox::sim
