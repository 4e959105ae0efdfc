// The kinds of worlds. Each runs any seed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/result.hpp"

namespace outbox::sim {

struct WorldKind {
  std::string_view name;
  std::uint64_t seeds;  ///< How many seeds a run of the tests takes.
  std::function<SimResult(std::uint64_t seed, bool trace)> run;
  /// What must have happened at least once in all these seeds, because a simulation in which
  /// nothing happens proves nothing.
  struct Must {
    std::string_view what;
    std::uint64_t SimResult::*count;
  };
  std::vector<Must> must;
};

[[nodiscard]] const std::vector<WorldKind>& world_kinds();
[[nodiscard]] const WorldKind* find_world(std::string_view name);
/// The command that replays a seed.
[[nodiscard]] std::string replay_command(std::string_view world, std::uint64_t seed);

}  // namespace outbox::sim
