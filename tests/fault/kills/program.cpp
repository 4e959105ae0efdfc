// Runs rounds of kills until there were enough, for scripts/soak --kills.
//
//   outbox_kills KILLS FOLDER SEED
//
// FOLDER keeps the results of all rounds that ended, and the journal and the logs of the last
// round. Exit status 3 means that a promise was broken.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>

#include "fault/kills/report.hpp"
#include "fault/kills/round.hpp"
#include "support/servers.hpp"

namespace outbox::test::kills {
namespace {

constexpr std::uint64_t kKillsPerRound = 50;

int run(std::uint64_t kills, const std::string& folder, std::uint64_t seed) {
  Report report(folder, seed);
  while (report.kills() < kills) {
    RoundOptions options;
    options.seed = seed;
    options.number = report.rounds() + 1;
    options.kills = std::min(kKillsPerRound, kills - report.kills());
    options.brokers = environment("OUTBOX_TEST_KAFKA").value_or("");
    options.folder = folder + "/round";
    std::filesystem::remove_all(options.folder);
    std::filesystem::create_directory(options.folder);
    const RoundResult round = run_round(options);
    std::cerr << "round " << options.number << ": " << round.kills() << " kills in "
              << round.seconds << " s: " << round.verdict << " of at most "
              << round.duplicates_allowed << '\n';
    if (!round.good()) {
      std::cerr << round.trouble << "\nseed " << seed << ", journal and logs: " << options.folder
                << '\n';
      return 3;
    }
    report.add(round);
  }
  std::cout << report.table();
  return 0;
}

}  // namespace
}  // namespace outbox::test::kills

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    return outbox::test::kills::run(std::strtoull(argv[1], nullptr, 10), argv[2],
                                    std::strtoull(argv[3], nullptr, 10));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
