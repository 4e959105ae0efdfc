// Runs thousands of seeds of each kind of world. Every one must keep every promise at every step.
// OUTBOX_SIM_SEEDS sets the number of seeds of every kind.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "sim/worlds.hpp"
#include "support/sanitized.hpp"

namespace outbox::sim {
namespace {

constexpr std::uint64_t kSlower = outbox::test::kSanitized ? 20 : 1;

std::uint64_t seeds_of(const WorldKind& kind) {
  const char* const text = std::getenv("OUTBOX_SIM_SEEDS");
  return text == nullptr ? kind.seeds / kSlower : std::strtoull(text, nullptr, 10);
}

class Sim : public testing::TestWithParam<WorldKind> {};

TEST_P(Sim, keeps_every_promise_at_every_step) {
  const WorldKind& kind = GetParam();
  std::map<std::string_view, std::uint64_t> happened;
  for (std::uint64_t seed = 1; seed <= seeds_of(kind); ++seed) {
    const SimResult result = kind.run(seed, false);
    ASSERT_EQ(result.broken, "") << "to see it step by step: " << replay_command(kind.name, seed);
    for (const auto& must : kind.must) happened[must.what] += result.*must.count;
  }
  for (const auto& must : kind.must) EXPECT_GT(happened[must.what], 0U) << must.what;
}

INSTANTIATE_TEST_SUITE_P(Worlds, Sim, testing::ValuesIn(world_kinds()), [](const auto& instance) {
  std::string name(instance.param.name);
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
});

}  // namespace
}  // namespace outbox::sim
