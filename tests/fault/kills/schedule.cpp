#include "fault/kills/schedule.hpp"

#include <array>
#include <utility>

#include "support/random.hpp"

namespace outbox::test::kills {
namespace {

constexpr std::array<std::pair<Fault, int>, kFaults> kDeck{{{Fault::relay_killed, 11},
                                                            {Fault::relay_suspended, 6},
                                                            {Fault::all_relays_killed, 2},
                                                            {Fault::database_stopped, 5},
                                                            {Fault::backend_killed, 3},
                                                            {Fault::database_behind_sleeper, 2},
                                                            {Fault::broker_killed, 1}}};
constexpr std::uint64_t kLongestPauseMs = 300;

std::vector<Fault> shuffled_deck(Random& random) {
  std::vector<Fault> deck;
  for (const auto& [fault, count] : kDeck) deck.insert(deck.end(), count, fault);
  for (std::size_t left = deck.size(); left > 1; --left)
    std::swap(deck[left - 1], deck[random.below(left)]);
  return deck;
}

}  // namespace

const char* to_string(Fault fault) noexcept {
  switch (fault) {
    case Fault::relay_killed: return "relay killed";
    case Fault::relay_suspended: return "relay suspended past its lease";
    case Fault::all_relays_killed: return "all relays killed";
    case Fault::database_stopped: return "database stopped at once";
    case Fault::backend_killed: return "backend killed";
    case Fault::database_behind_sleeper: return "database stopped, a relay suspended";
    case Fault::broker_killed: return "broker killed";
  }
  return "";
}

std::vector<Strike> schedule(std::uint64_t seed, int round, std::size_t strikes) {
  Random random(seed * 1'000'003 + static_cast<std::uint64_t>(round));
  std::vector<Strike> all;
  while (all.size() < strikes) {
    for (const Fault fault : shuffled_deck(random)) {
      if (all.size() == strikes) break;
      all.push_back({.fault = fault,
                     .victim = random.next(),
                     .pause = std::chrono::milliseconds(random.below(kLongestPauseMs))});
    }
  }
  return all;
}

std::uint64_t windows_repeated(Fault fault, std::uint64_t relays) noexcept {
  switch (fault) {
    case Fault::relay_killed:
    case Fault::relay_suspended: return 1;
    case Fault::all_relays_killed:
    case Fault::broker_killed: return relays;
    case Fault::database_stopped:
    case Fault::backend_killed:
    case Fault::database_behind_sleeper: return 2 * relays;
  }
  return 0;
}

}  // namespace outbox::test::kills
