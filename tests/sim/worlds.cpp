#include "sim/worlds.hpp"

#include <algorithm>

#include "sim/groups/world.hpp"
#include "sim/world.hpp"

namespace outbox::sim {
namespace {

/// Half of the seeds have a gapless sink; the others have one event per key in flight.
SimResult run_delivery(SimOptions options, std::uint64_t seed, bool trace) {
  options.seed = seed;
  options.gapless = seed % 2 == 0;
  options.trace = trace;
  return run(options);
}

auto delivery(const SimOptions& options) {
  return [options](std::uint64_t seed, bool trace) { return run_delivery(options, seed, trace); };
}

auto parking(SimOptions options) {
  options.steps = 300;
  options.keys = 20;
  options.reject_percent = 6;
  return [options](std::uint64_t seed, bool trace) {
    SimOptions of_seed = options;
    of_seed.dead_blocks = seed / 2 % 2 == 0;
    return run_delivery(of_seed, seed, trace);
  };
}

/// All seeds have the same kind of sink, so that what must happen does happen to it.
auto setting_aside(const SimOptions& options) {
  return [options](std::uint64_t seed, bool trace) {
    SimOptions of_seed = options;
    of_seed.seed = seed;
    of_seed.dead_blocks = seed % 2 == 0;
    of_seed.trace = trace;
    return run(of_seed);
  };
}

auto failing(bool gapless) {
  return setting_aside({.steps = 500,
                        .gapless = gapless,
                        .keys = 20,
                        .crash_percent = 0,
                        .takeover_percent = 0,
                        .fail_percent = 1,
                        .sick_percent = 2,
                        .outage_permille = 8});
}

auto everything(bool gapless) {
  return setting_aside({.steps = 400,
                        .gapless = gapless,
                        .keys = 20,
                        .crash_percent = 1,
                        .takeover_percent = 1,
                        .fail_percent = 1,
                        .store_loss_percent = 1,
                        .reject_percent = 2,
                        .sick_percent = 2,
                        .slow_percent = 1,
                        .outage_permille = 5});
}

auto groups(const GroupOptions& options) {
  return [options](std::uint64_t seed, bool trace) {
    GroupOptions of_seed = options;
    of_seed.seed = seed;
    of_seed.gapless = seed % 2 == 0;
    of_seed.same_machine = seed / 2 % 2 == 0;
    of_seed.dead_blocks = seed / 4 % 2 == 0;
    of_seed.trace = trace;
    return run(of_seed);
  };
}

/// Worlds in which the relays are workers.
auto tasks(GroupOptions options) {
  options.tasks = true;
  options.gapless = false;
  if (options.keys == GroupOptions{}.keys) options.keys = 12;
  options.filtered_percent = 5;
  options.fail_percent = 0;
  if (options.slow_percent == 0) options.slow_percent = 15;
  return [options](std::uint64_t seed, bool trace) {
    GroupOptions of_seed = options;
    of_seed.seed = seed;
    of_seed.same_machine = seed % 2 == 0;
    of_seed.dead_blocks = seed / 2 % 4 == 0;
    of_seed.clocks_differ = seed / 8 % 2 == 0;
    of_seed.trace = trace;
    return run(of_seed);
  };
}

/// A type is set apart while the workers run: by workers that have a limit for it, or by a person.
auto types_apart(const GroupOptions& options) {
  return [options](std::uint64_t seed, bool trace) {
    GroupOptions of_seed = options;
    of_seed.limited_from = seed % 3 == 0 ? 0 : 1 + static_cast<unsigned>(seed / 3 % 5);
    of_seed.pauses_of_type = seed % 3 == 1 ? 0 : 12;
    return tasks(of_seed)(seed, trace);
  };
}

std::vector<WorldKind> make_kinds() {
  using R = SimResult;
  return {
      {.name = "quiet",
       .seeds = 300,
       .run =
           delivery({.crash_percent = 0, .takeover_percent = 0, .fail_percent = 0, .exact = true}),
       .must = {{"delivered", &R::delivered}}},
      // No settlement is due by its count or its interval.
      {.name = "small-window",
       .seeds = 500,
       .run =
           [](std::uint64_t seed, bool trace) {
             return run_delivery({.steps = 60,
                                  .crash_percent = 0,
                                  .takeover_percent = 0,
                                  .fail_percent = 0,
                                  .window = seed / 2 % 2 == 0 ? 9U : 17U,
                                  .exact = true,
                                  .lazy_settling = true},
                                 seed, trace);
           },
       .must = {{"delivered", &R::delivered}}},
      {.name = "failures",
       .seeds = 500,
       .run = delivery({.crash_percent = 0, .takeover_percent = 0, .fail_percent = 5}),
       .must = {{"failures", &R::failures}, {"duplicates", &R::duplicates}}},
      {.name = "crashes",
       .seeds = 1200,
       .run = delivery({.crash_percent = 2, .takeover_percent = 2, .fail_percent = 3}),
       .must = {{"crashes", &R::crashes},
                {"takeovers", &R::takeovers},
                {"failures", &R::failures}}},
      {.name = "lost-store",
       .seeds = 500,
       .run = delivery(
           {.crash_percent = 0, .takeover_percent = 0, .fail_percent = 3, .store_loss_percent = 3}),
       .must = {{"store losses", &R::store_losses}}},
      {.name = "repeated-ids",
       .seeds = 200,
       .run = delivery({.crash_percent = 0,
                        .takeover_percent = 0,
                        .fail_percent = 3,
                        .store_loss_percent = 3,
                        .repeated_ids = true}),
       .must = {{"store losses", &R::store_losses}}},
      {.name = "stops",
       .seeds = 300,
       .run = delivery({.fail_percent = 2, .filtered_percent = 0, .poison = true}),
       .must = {{"stopped", &R::stopped}}},
      {.name = "parking",
       .seeds = 1000,
       .run = parking({.fail_percent = 2, .store_loss_percent = 1}),
       .must = {{"parked", &R::parked}, {"dead", &R::dead}, {"crashes", &R::crashes}}},
      {.name = "parking-quiet",
       .seeds = 300,
       .run =
           parking({.crash_percent = 0, .takeover_percent = 0, .fail_percent = 0, .exact = true}),
       .must = {{"parked", &R::parked}}},
      // The sink refuses events by itself, even while others of their keys are in flight.
      {.name = "refusing",
       .seeds = 800,
       .run = parking({.fail_percent = 3, .store_loss_percent = 1, .refuse_percent = 12}),
       .must = {{"refused", &R::refused},
                {"parked", &R::parked},
                {"dead", &R::dead},
                {"crashes", &R::crashes}}},
      {.name = "refusing-quiet",
       .seeds = 300,
       .run = parking({.crash_percent = 0,
                       .takeover_percent = 0,
                       .fail_percent = 0,
                       .refuse_percent = 12,
                       .exact = true}),
       .must = {{"refused", &R::refused}, {"parked", &R::parked}}},
      {.name = "lies",
       .seeds = 600,
       .run = parking({.fail_percent = 2, .store_loss_percent = 2, .lie_percent = 20}),
       .must = {{"lies", &R::lies}, {"store losses", &R::store_losses}, {"parked", &R::parked}}},
      {.name = "slow",
       .seeds = 500,
       .run = setting_aside({.steps = 400,
                             .gapless = false,
                             .keys = 40,
                             .crash_percent = 0,
                             .takeover_percent = 0,
                             .fail_percent = 0,
                             .slow_percent = 1,
                             .exact = true}),
       .must = {{"slow", &R::slow}, {"late", &R::late}}},
      {.name = "failing",
       .seeds = 500,
       .run = failing(false),
       .must = {{"blamed", &R::blamed}, {"outages", &R::outages}}},
      {.name = "failing-gapless",
       .seeds = 500,
       .run = failing(true),
       .must = {{"blamed", &R::blamed}, {"outages", &R::outages}}},
      {.name = "everything",
       .seeds = 700,
       .run = everything(false),
       .must = {{"parked", &R::parked},
                {"blamed", &R::blamed},
                {"slow", &R::slow},
                {"outages", &R::outages}}},
      {.name = "everything-gapless",
       .seeds = 700,
       .run = everything(true),
       .must = {{"parked", &R::parked}, {"blamed", &R::blamed}, {"outages", &R::outages}}},
      {.name = "groups-quiet",
       .seeds = 300,
       .run = groups({.fail_percent = 0, .joins = 8, .leaves = 5, .exact = true}),
       .must = {{"claims", &R::claims},
                {"several strands", &R::several_strands},
                {"merges", &R::merges}}},
      {.name = "groups",
       .seeds = 1500,
       .run = groups({.joins = 10, .leaves = 4, .crashes = 6, .pauses = 6, .lost_connections = 5}),
       .must = {{"claims", &R::claims},
                {"crashes", &R::crashes},
                {"several strands", &R::several_strands},
                {"merges", &R::merges},
                {"void rows", &R::void_rows}}},
      {.name = "groups-clocks",
       .seeds = 500,
       .run = groups({.lie_percent = 10,
                      .joins = 8,
                      .crashes = 3,
                      .pauses = 6,
                      .freezes = 6,
                      .jumps = 6,
                      .lost_connections = 5}),
       .must = {{"claims", &R::claims}, {"void rows", &R::void_rows}, {"lies", &R::lies}}},
      {.name = "groups-database",
       .seeds = 1000,
       .run = groups({.joins = 6,
                      .leaves = 2,
                      .crashes = 3,
                      .pauses = 3,
                      .lost_connections = 3,
                      .database_crashes = 8}),
       .must = {{"database crashes", &R::database_crashes}, {"claims", &R::claims}}},
      // Lanes are given from one relay to another, and nothing else happens.
      {.name = "groups-parking-quiet",
       .seeds = 300,
       .run = groups({.keys = 20,
                      .fail_percent = 0,
                      .reject_percent = 5,
                      .sick_percent = 2,
                      .joins = 8,
                      .leaves = 5}),
       .must = {{"parked", &R::parked}, {"dead", &R::dead}, {"claims", &R::claims}}},
      {.name = "groups-parking",
       .seeds = 1000,
       .run = groups({.keys = 20,
                      .fail_percent = 1,
                      .reject_percent = 5,
                      .sick_percent = 2,
                      .slow_percent = 1,
                      .joins = 10,
                      .leaves = 4,
                      .crashes = 5,
                      .pauses = 5,
                      .freezes = 3,
                      .lost_connections = 6,
                      .outages = 5,
                      .people = 30}),
       .must = {{"parked", &R::parked},
                {"dead", &R::dead},
                {"slow", &R::slow},
                {"outages", &R::outages},
                {"decisions", &R::decisions},
                {"claims", &R::claims}}},
      {.name = "groups-parking-database",
       .seeds = 500,
       .run = groups({.keys = 20,
                      .fail_percent = 1,
                      .reject_percent = 5,
                      .sick_percent = 1,
                      .joins = 6,
                      .crashes = 3,
                      .pauses = 3,
                      .lost_connections = 3,
                      .database_crashes = 8,
                      .people = 20}),
       .must = {{"parked", &R::parked}, {"database crashes", &R::database_crashes}}},
      // There is one relay, which comes back after each crash.
      {.name = "replay",
       .seeds = 500,
       .run = groups({.keys = 20,
                      .most_relays = 1,
                      .fail_percent = 1,
                      .reject_percent = 4,
                      .sick_percent = 1,
                      .crashes = 4,
                      .lost_connections = 5,
                      .people = 10,
                      .replays = 15}),
       .must = {{"replays", &R::replays},
                {"resumed", &R::replays_resumed},
                {"replayed", &R::replayed},
                {"skipped", &R::skipped},
                {"parked", &R::parked}}},
      {.name = "groups-replay",
       .seeds = 800,
       .run = groups({.keys = 20,
                      .fail_percent = 1,
                      .reject_percent = 4,
                      .sick_percent = 1,
                      .joins = 10,
                      .leaves = 4,
                      .crashes = 5,
                      .pauses = 5,
                      .lost_connections = 5,
                      .outages = 3,
                      .people = 10,
                      .replays = 15}),
       .must = {{"replays", &R::replays},
                {"resumed", &R::replays_resumed},
                {"replayed", &R::replayed},
                {"claims", &R::claims}}},
      {.name = "groups-replay-database",
       .seeds = 400,
       .run = groups({.keys = 20,
                      .reject_percent = 3,
                      .joins = 6,
                      .crashes = 3,
                      .pauses = 3,
                      .lost_connections = 3,
                      .database_crashes = 8,
                      .replays = 15}),
       .must = {{"replayed", &R::replayed}, {"database crashes", &R::database_crashes}}},
      // Lanes are given from one worker to another while tasks run, and nothing else happens.
      {.name = "tasks-quiet",
       .seeds = 300,
       .run = tasks({.joins = 8, .leaves = 5, .once = true}),
       .must = {{"kept", &R::kept}, {"given back", &R::given_back}, {"claims", &R::claims}}},
      {.name = "tasks",
       .seeds = 1000,
       .run = tasks({.reject_percent = 6,
                     .sick_percent = 3,
                     .joins = 8,
                     .leaves = 4,
                     .crashes = 4,
                     .pauses = 6,
                     .freezes = 3,
                     .lost_connections = 6,
                     .kill_percent = 1,
                     .snooze_percent = 3}),
       .must = {{"kept", &R::kept},
                {"recovered", &R::recovered},
                {"lost", &R::lost},
                {"without a run", &R::runless},
                {"given back", &R::given_back},
                {"kills", &R::kills},
                {"dead", &R::dead},
                {"claims", &R::claims}}},
      {.name = "tasks-database",
       .seeds = 700,
       .run = tasks({.reject_percent = 4,
                     .sick_percent = 2,
                     .joins = 6,
                     .leaves = 2,
                     .crashes = 3,
                     .pauses = 3,
                     .lost_connections = 3,
                     .database_crashes = 8,
                     .snooze_percent = 3}),
       .must = {{"kept", &R::kept},
                {"recovered", &R::recovered},
                {"database crashes", &R::database_crashes}}},
      // Tasks are long, and some workers have few of them.
      {.name = "tasks-sharing",
       .seeds = 500,
       .run = tasks({.reject_percent = 3,
                     .sick_percent = 4,
                     .slow_percent = 60,
                     .joins = 8,
                     .leaves = 4,
                     .crashes = 5,
                     .pauses = 4,
                     .lost_connections = 4,
                     .database_crashes = 2,
                     .people = 120,
                     .snooze_percent = 2}),
       .must = {{"given away", &R::given_away},
                {"claimed", &R::claimed},
                {"recovered", &R::recovered},
                {"decisions about those given away", &R::ready_decisions},
                {"database crashes", &R::database_crashes}}},
      {.name = "tasks-apart-quiet",
       .seeds = 300,
       .run = types_apart({.joins = 8, .leaves = 5, .once = true}),
       .must = {{"first cursors", &R::types_begun},
                {"pauses of a type", &R::type_pauses},
                {"kept", &R::kept},
                {"claims", &R::claims}}},
      {.name = "tasks-apart",
       .seeds = 700,
       .run = types_apart({.reject_percent = 6,
                           .sick_percent = 2,
                           .joins = 8,
                           .leaves = 4,
                           .crashes = 5,
                           .pauses = 5,
                           .freezes = 2,
                           .lost_connections = 6,
                           .database_crashes = 3,
                           .people = 15,
                           .kill_percent = 1,
                           .snooze_percent = 2}),
       .must = {{"first cursors", &R::types_begun},
                {"pauses of a type", &R::type_pauses},
                {"kept", &R::kept},
                {"recovered", &R::recovered},
                {"decisions", &R::decisions},
                {"database crashes", &R::database_crashes}}},
      {.name = "tasks-people",
       .seeds = 700,
       .run = tasks({.keys = 24,
                     .reject_percent = 12,
                     .sick_percent = 2,
                     .joins = 6,
                     .leaves = 3,
                     .crashes = 2,
                     .pauses = 3,
                     .jumps = 4,
                     .lost_connections = 3,
                     .people = 60}),
       .must = {{"kept", &R::kept},
                {"decisions", &R::decisions},
                {"cancelled", &R::cancelled},
                {"dead", &R::dead}}},
      // There are few keys, so that what a person sends again meets events of its key in the
      // stream.
      {.name = "tasks-people-few-keys",
       .seeds = 100,
       .run = tasks({.keys = 3, .reject_percent = 25, .pauses = 3, .people = 200}),
       .must = {{"decisions", &R::decisions}, {"dead", &R::dead}}},
  };
}

}  // namespace

const std::vector<WorldKind>& world_kinds() {
  static const std::vector<WorldKind> kinds = make_kinds();
  return kinds;
}

const WorldKind* find_world(std::string_view name) {
  const auto& kinds = world_kinds();
  const auto found = std::find_if(kinds.begin(), kinds.end(),
                                  [&](const WorldKind& kind) { return kind.name == name; });
  return found == kinds.end() ? nullptr : &*found;
}

std::string replay_command(std::string_view world, std::uint64_t seed) {
  return "build/tests/outbox_sim --world " + std::string(world) + " --seed " +
         std::to_string(seed) + " --trace";
}

}  // namespace outbox::sim
