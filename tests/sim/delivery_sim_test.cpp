// Seeded simulation of the delivery core. OUTBOX_SIM_SEED=<seed> replays a failing seed; OUTBOX_SIM_SEEDS is the number of seeds
// per run.
#include <gtest/gtest.h>

#include <cstdlib>

#include "sim/world.hpp"

namespace outbox::sim {
namespace {

std::uint64_t number_from(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

struct Total {
  std::uint64_t delivered{0};
  std::uint64_t duplicates{0};
  int crashes{0};
  int takeovers{0};
  int store_losses{0};
  int failures{0};
  int stopped{0};
  std::uint64_t parked{0};
  std::uint64_t dead{0};
};

/// Runs many seeds of one kind of world; every one must keep every promise at every step.
Total run_seeds(SimOptions options) {
  const std::uint64_t one = number_from("OUTBOX_SIM_SEED", 0);
  const std::uint64_t first = one != 0 ? one : 1;
  const std::uint64_t last = one != 0 ? one : number_from("OUTBOX_SIM_SEEDS", 120);
  Total total;
  for (options.seed = first; options.seed <= last; ++options.seed) {
    const SimResult result = run(options);
    EXPECT_EQ(result.broken, "") << "replay with OUTBOX_SIM_SEED=" << options.seed;
    if (!result.broken.empty()) break;
    total.delivered += result.delivered;
    total.duplicates += result.duplicates;
    total.crashes += result.crashes;
    total.takeovers += result.takeovers;
    total.store_losses += result.store_losses;
    total.failures += result.failures;
    total.stopped += result.stopped ? 1 : 0;
    total.parked += result.parked;
    total.dead += result.dead;
  }
  return total;
}

TEST(DeliverySim, without_faults_everything_arrives_exactly_once) {
  for (const bool gapless : {true, false}) {
    const Total total = run_seeds(
        {.gapless = gapless, .crash_percent = 0, .takeover_percent = 0, .fail_percent = 0});
    EXPECT_GT(total.delivered, 0U);
    EXPECT_EQ(total.duplicates, 0U);
  }
}

TEST(DeliverySim, a_gapless_sink_that_fails_and_relays_that_crash_keep_every_promise) {
  const Total total =
      run_seeds({.gapless = true, .crash_percent = 2, .takeover_percent = 2, .fail_percent = 3});
  // A simulation in which nothing happens proves nothing.
  EXPECT_GT(total.crashes, 0);
  EXPECT_GT(total.takeovers, 0);
  EXPECT_GT(total.failures, 0);
}

TEST(DeliverySim, a_gated_sink_that_fails_and_relays_that_crash_keep_every_promise) {
  const Total total =
      run_seeds({.gapless = false, .crash_percent = 2, .takeover_percent = 2, .fail_percent = 3});
  EXPECT_GT(total.crashes, 0);
  EXPECT_GT(total.takeovers, 0);
  EXPECT_GT(total.failures, 0);
}

TEST(DeliverySim, failures_without_crashes_repeat_only_what_is_in_doubt) {
  for (const bool gapless : {true, false}) {
    const Total total = run_seeds(
        {.gapless = gapless, .crash_percent = 0, .takeover_percent = 0, .fail_percent = 5});
    EXPECT_GT(total.failures, 0);
  }
}

TEST(DeliverySim, a_lost_store_costs_no_duplicate_and_leaves_nothing_in_doubt) {
  for (const bool gapless : {true, false}) {
    const Total total = run_seeds({.gapless = gapless,
                                   .crash_percent = 0,
                                   .takeover_percent = 0,
                                   .fail_percent = 3,
                                   .store_loss_percent = 3});
    EXPECT_GT(total.store_losses, 0);
  }
}

TEST(DeliverySim, a_small_window_does_not_wait_for_the_settle_interval) {
  for (const std::size_t window : {9U, 17U}) {
    const Total total = run_seeds({.steps = 60,
                                   .crash_percent = 0,
                                   .takeover_percent = 0,
                                   .fail_percent = 0,
                                   .window = window,
                                   .lazy_settling = true});
    EXPECT_GT(total.delivered, 0U);
  }
}

TEST(DeliverySim, a_rejected_event_stops_the_subscription_and_nothing_is_skipped) {
  for (const bool gapless : {true, false}) {
    const Total total = run_seeds({.gapless = gapless,
                                   .crash_percent = 1,
                                   .takeover_percent = 1,
                                   .fail_percent = 2,
                                   .filtered_percent = 0,
                                   .poison = true});
    EXPECT_GT(total.stopped, 0);
  }
}

TEST(DeliverySim, rejected_events_are_parked_and_every_promise_holds_for_the_others) {
  for (const bool gapless : {true, false}) {
    for (const bool dead_blocks : {false, true}) {
      const Total total = run_seeds({.steps = 300,
                                     .gapless = gapless,
                                     .keys = 20,
                                     .crash_percent = 1,
                                     .takeover_percent = 1,
                                     .fail_percent = 2,
                                     .store_loss_percent = 1,
                                     .reject_percent = 6,
                                     .dead_blocks = dead_blocks});
      EXPECT_GT(total.parked, 0U);
      EXPECT_GT(total.dead, 0U);
    }
  }
}

TEST(DeliverySim, without_crashes_a_rejected_event_costs_no_duplicate) {
  for (const bool gapless : {true, false}) {
    const Total total = run_seeds({.steps = 300,
                                   .gapless = gapless,
                                   .keys = 20,
                                   .crash_percent = 0,
                                   .takeover_percent = 0,
                                   .fail_percent = 0,
                                   .reject_percent = 6});
    EXPECT_EQ(total.duplicates, 0U);
    EXPECT_GT(total.parked, 0U);
  }
}

}  // namespace
}  // namespace outbox::sim
