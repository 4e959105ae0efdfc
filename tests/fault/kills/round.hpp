// One round of kills: a shop on a PostgreSQL server of its own, relays that share the lanes and
// deliver to a Kafka topic, and faults while they work. At the end everything is healed, the topic
// is read back from its beginning and compared with what was written.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "fault/kills/schedule.hpp"
#include "support/judge.hpp"

namespace outbox::test::kills {

struct RoundOptions {
  std::uint64_t seed{1};
  int number{1};
  std::size_t kills{50};
  std::string brokers;  ///< Of the shared test servers, which scripts/servers can kill.
  std::string folder;   ///< For its journal and the logs.
};

struct RoundResult {
  std::array<std::uint64_t, kFaults> hits{};
  test::Verdict verdict{};
  std::uint64_t taken_back{0};  ///< Acknowledged asynchronous commits that a crash took back.
  std::uint64_t duplicates_allowed{0};
  std::uint64_t seconds{0};
  std::string trouble;  ///< What `outbox verify` found, or what did not heal; empty: nothing.

  [[nodiscard]] std::uint64_t kills() const;
  [[nodiscard]] bool good() const {
    return trouble.empty() && verdict.kept() && verdict.duplicates <= duplicates_allowed;
  }
};

/// Throws if a server cannot be started.
[[nodiscard]] RoundResult run_round(const RoundOptions& options);

}  // namespace outbox::test::kills
