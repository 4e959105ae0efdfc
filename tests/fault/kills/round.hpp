// Runs one round of kills. A shop writes on a PostgreSQL server of its own, relays share the lanes
// and deliver to a Kafka topic, and faults hit them while they work. At the end everything is
// healed, and the topic is read from its beginning and compared with what was written.
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
  std::string brokers;  ///< The shared test servers, which scripts/servers can kill.
  std::string folder;   ///< The folder of the journal and the logs.
};

struct RoundResult {
  std::array<std::uint64_t, kFaults> hits{};
  test::Verdict verdict{};
  std::uint64_t taken_back{0};  ///< Acknowledged asynchronous commits that a crash took back.
  std::uint64_t duplicates_allowed{0};
  std::uint64_t seconds{0};
  /// What `outbox verify` found, or what did not heal; empty if nothing is wrong.
  std::string trouble;

  [[nodiscard]] std::uint64_t kills() const;
  [[nodiscard]] bool good() const {
    return trouble.empty() && verdict.kept() && verdict.duplicates <= duplicates_allowed;
  }
};

/// Throws if a server cannot be started.
[[nodiscard]] RoundResult run_round(const RoundOptions& options);

}  // namespace outbox::test::kills
