// Which faults strike a round, in which order: decided by the seed alone. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace outbox::test::kills {

enum class Fault : std::uint8_t {
  relay_killed,             ///< SIGKILL; started again at once.
  relay_suspended,          ///< SIGSTOP until it has lost its lanes, then SIGCONT.
  all_relays_killed,        ///< SIGKILL of each.
  database_stopped,         ///< Like pg_ctl stop -m immediate; started again.
  backend_killed,           ///< SIGKILL of one backend: the server ends the others and recovers.
  database_behind_sleeper,  ///< The database is stopped and started while a relay is suspended.
  broker_killed,            ///< SIGKILL of Kafka; started again.
};
inline constexpr std::size_t kFaults = 7;

[[nodiscard]] const char* to_string(Fault fault) noexcept;

struct Strike {
  Fault fault{};
  std::uint64_t victim{0};  ///< Which of those that can be hit, modulo their number.
  std::chrono::milliseconds pause{0};
};

/// Of 30 strikes that follow each other from a multiple of 30 each fault has its share, the rarest
/// one strike.
[[nodiscard]] std::vector<Strike> schedule(std::uint64_t seed, int round, std::size_t strikes);

/// Most duplicates that a fault may cause, in windows: those of the relays that it can make repeat
/// what they have not settled, and after a crash of the database also the settlements that were not
/// on the disk, of at most another window for each relay.
[[nodiscard]] std::uint64_t windows_repeated(Fault fault, std::uint64_t relays) noexcept;

}  // namespace outbox::test::kills
