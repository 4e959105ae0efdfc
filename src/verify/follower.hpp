// Compares the settlements of one subscription with the log as they get old enough, and keeps what
// it has read of the younger ones from call to call (docs/design/verify.md, "All the time").
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <outbox/error.hpp>
#include <vector>

#include "store/history.hpp"
#include "verify/ledger_walk.hpp"

namespace outbox::verify {

class Follower {
 public:
  /// Called after each page of rows or events. It may wait. If it returns false, advance() returns
  /// early, and the follower must not be used again.
  using Pace = std::function<bool()>;

  /// Begins where another one has compared up to; with nothing, at what is there of the ledger. So
  /// many rows of each generation are in memory at most, besides those that are too young.
  explicit Follower(const std::vector<Compared>& from, std::size_t rows_of_generation = 5000);

  /// By the clock of the store. Unit: microseconds, the first since 1970.
  struct Times {
    std::int64_t now_us{0};
    std::int64_t age_us{0};  ///< A settlement is compared when it is older than this.
  };

  struct Progress {
    std::int64_t events{0};       ///< The number of events that were compared.
    std::int64_t settlements{0};  ///< The number of settlements that were compared.
    std::size_t fault_count{0};
    std::vector<Fault> faults{};  ///< The first of them.
    bool finished{true};          ///< If not, `pace` has ended it.
    bool more{false};             ///< There is more to compare at once.
  };
  /// Reads new settlements, a limited number of them, and compares those that are old enough with
  /// the log.
  [[nodiscard]] Result<Progress> advance(store::LedgerReader& reader, std::int32_t subscription,
                                         const Times& times, const Pace& pace);
  /// Up to where everything is compared.
  [[nodiscard]] std::vector<Compared> compared() const { return walk_.compared(); }

 private:
  struct Reading {
    store::LedgerReader& reader;
    std::int32_t subscription{0};
    const Pace& pace;
  };
  // These return false if `pace` has ended them. `horizon`: rows that were written from then on are
  // left for the next time, and all that were written before are read.
  [[nodiscard]] Result<bool> read_rows(const Reading& reading, std::int64_t& horizon);
  [[nodiscard]] Result<bool> read_generations(const Reading& reading, store::LedgerRank after,
                                              std::int64_t last, std::int64_t& horizon);
  [[nodiscard]] Result<bool> compare(const Reading& reading);

  std::size_t rows_of_generation_;
  std::int64_t first_id_{store::kLastGeneration};  ///< Rows up to this one are not needed.
  LedgerWalk walk_;
  /// The newest row that was read, by generation. A generation has one writer, whose rows are
  /// committed in the order of their ids.
  std::map<std::int64_t, std::int64_t> read_;
};

}  // namespace outbox::verify
