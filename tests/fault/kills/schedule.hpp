// Decides by the seed alone which faults strike a round, and in which order. It is pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace outbox::test::kills {

enum class Fault : std::uint8_t {
  relay_killed,             ///< SIGKILL; the relay is started again at once.
  relay_suspended,          ///< SIGSTOP until the relay has lost its lanes, then SIGCONT.
  all_relays_killed,        ///< SIGKILL of each relay.
  database_stopped,         ///< Like pg_ctl stop -m immediate; the server is started again.
  backend_killed,           ///< SIGKILL of one backend: the server ends the others and recovers.
  database_behind_sleeper,  ///< The database is stopped and started while a relay is suspended.
  broker_killed,            ///< SIGKILL of Kafka; it is started again.
};
inline constexpr std::size_t kFaults = 7;

[[nodiscard]] const char* to_string(Fault fault) noexcept;

struct Strike {
  Fault fault{};
  std::uint64_t victim{0};  ///< Which of the possible victims is hit, modulo their number.
  std::chrono::milliseconds pause{0};
};

/// Returns the strikes of a round. In each run of 30 strikes that starts at a multiple of 30 every
/// fault has its fixed share; the rarest fault strikes once.
[[nodiscard]] std::vector<Strike> schedule(std::uint64_t seed, int round, std::size_t strikes);

/// The most duplicates that a fault may cause, in windows. Each relay that it hits may repeat what
/// it has not settled, which is at most one window. A crash of the database also loses settlements
/// that were not on the disk, of at most another window for each relay.
[[nodiscard]] std::uint64_t windows_repeated(Fault fault, std::uint64_t relays) noexcept;

}  // namespace outbox::test::kills
