// Replays a seed of the simulation, or runs new ones for a long time.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <string_view>

#include "sim/worlds.hpp"

namespace outbox::sim {
namespace {

constexpr int kBroken = 3;
constexpr int kUsage = 2;

constexpr std::string_view kHelp = R"(usage: outbox_sim --world NAME --seed N [--trace]
       outbox_sim --world NAME --seed N --expect PROMISE
       outbox_sim --world NAME --find PROMISE [--seed N]
       outbox_sim --soak FILE [--minutes M] [--world NAME]
       outbox_sim --list

  --seed    this seed; exit code 3 if a promise is broken
  --trace   prints every step
  --expect  the seed must break a promise, and the report begin with this: exit code 0
  --find    prints the first seed, from N on, that breaks a promise so
  --soak    seeds that were not run before, of all worlds in turn; FILE has the next ones
)";

constexpr std::array<std::string_view, 8> kOptions{"--world", "--seed", "--trace",   "--expect",
                                                   "--find",  "--soak", "--minutes", "--list"};

struct Arguments {
  std::map<std::string, std::string, std::less<>> values;

  [[nodiscard]] bool has(std::string_view name) const { return values.contains(name); }
  [[nodiscard]] std::string text(std::string_view name) const {
    const auto found = values.find(name);
    return found == values.end() ? std::string() : found->second;
  }
  [[nodiscard]] std::uint64_t number(std::string_view name, std::uint64_t fallback) const {
    return has(name) ? std::strtoull(text(name).c_str(), nullptr, 10) : fallback;
  }
};

int report(const WorldKind& kind, std::uint64_t seed, const SimResult& result) {
  std::cout << kind.name << ", seed " << seed << ": "
            << (result.broken.empty() ? "every promise held" : result.broken) << " ("
            << result.committed << " events, " << result.delivered << " delivered, "
            << result.duplicates << " duplicates)\n";
  if (result.broken.empty()) return 0;
  std::cout << "replay: " << replay_command(kind.name, seed) << '\n';
  return kBroken;
}

int expect(const WorldKind& kind, std::uint64_t seed, const std::string& promise) {
  const SimResult result = kind.run(seed, false);
  if (!result.broken.empty() && result.broken.starts_with(promise)) {
    std::cout << "found: " << result.broken << '\n';
    return 0;
  }
  std::cout << "seed " << seed << " of " << kind.name << " should break \"" << promise
            << "\" and says \"" << result.broken << "\"; another seed: --world " << kind.name
            << " --find \"" << promise << "\"\n";
  return kBroken;
}

int find(const WorldKind& kind, std::uint64_t seed, const std::string& promise) {
  for (const std::uint64_t last = seed + 20000; seed < last; ++seed) {
    const SimResult result = kind.run(seed, false);
    if (!result.broken.empty() && result.broken.starts_with(promise)) {
      std::cout << seed << ' ' << result.broken << '\n';
      return 0;
    }
  }
  std::cout << "none\n";
  return kBroken;
}

/// The next seed of each world.
class SoakState {
 public:
  explicit SoakState(std::string path) : path_(std::move(path)) {
    std::ifstream in(path_);
    for (std::string world; in >> world;) in >> next_[world];
  }
  std::uint64_t& next(const WorldKind& kind) {
    // Without a file the seeds differ from those of the last time.
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto fresh = std::chrono::duration_cast<std::chrono::seconds>(now).count() * 1000;
    return next_.try_emplace(std::string(kind.name), fresh).first->second;
  }
  void save() const {
    std::ofstream out(path_);
    for (const auto& [world, seed] : next_) out << world << ' ' << seed << '\n';
  }

 private:
  const std::string path_;
  std::map<std::string, std::uint64_t> next_;
};

/// Runs seeds of this world, or of all worlds in turn.
int soak(const Arguments& arguments, const WorldKind* only) {
  constexpr int kBatch = 1000;
  SoakState state(arguments.text("--soak"));
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::minutes(arguments.number("--minutes", 10));
  std::uint64_t all = 0;
  while (true) {
    for (const WorldKind& kind : world_kinds()) {
      if (only != nullptr && kind.name != only->name) continue;
      std::uint64_t& seed = state.next(kind);
      const std::uint64_t first = seed;
      for (int i = 0; i < kBatch; ++i, ++seed, ++all) {
        if (std::chrono::steady_clock::now() >= until) {
          state.save();
          std::cout << all << " seeds, nothing broken" << std::endl;
          return 0;
        }
        const SimResult result = kind.run(seed, false);
        if (!result.broken.empty()) {
          state.save();
          return report(kind, seed, result);
        }
      }
      state.save();
      std::cout << kind.name << ": seeds " << first << " to " << seed - 1 << std::endl;
    }
  }
}

int run(const Arguments& arguments) {
  if (arguments.has("--list")) {
    for (const WorldKind& kind : world_kinds()) std::cout << kind.name << '\n';
    return 0;
  }
  const WorldKind* const kind = find_world(arguments.text("--world"));
  const bool all_worlds = arguments.has("--soak") && !arguments.has("--world");
  if (kind == nullptr && !all_worlds) {
    std::cerr << "no such world: \"" << arguments.text("--world") << "\"; hint: --list\n";
    return kUsage;
  }
  if (arguments.has("--soak")) return soak(arguments, kind);
  const std::uint64_t seed = arguments.number("--seed", 1);
  if (arguments.has("--find")) return find(*kind, seed, arguments.text("--find"));
  if (arguments.has("--expect")) return expect(*kind, seed, arguments.text("--expect"));
  return report(*kind, seed, kind->run(seed, arguments.has("--trace")));
}

}  // namespace
}  // namespace outbox::sim

int main(int count, char** values) {
  outbox::sim::Arguments arguments;
  for (int i = 1; i < count; ++i) {
    const std::string name = values[i];
    const bool is_flag = name == "--trace" || name == "--list";
    const bool known =
        std::ranges::find(outbox::sim::kOptions, name) != outbox::sim::kOptions.end();
    if (!known || (!is_flag && i + 1 == count)) {
      std::cerr << outbox::sim::kHelp;
      return outbox::sim::kUsage;
    }
    arguments.values[name] = is_flag ? "" : values[++i];
  }
  if (arguments.values.empty()) {
    std::cerr << outbox::sim::kHelp;
    return outbox::sim::kUsage;
  }
  return outbox::sim::run(arguments);
}
