#include "demo/options.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace outbox::demo {
namespace {

constexpr int kMostSeconds = 3600;
constexpr int kMostWriters = 64;
constexpr int kMostKillsPerSecond = 2;

Status out_of_range(const std::string& option, int value, int least, int most) {
  return fail(Errc::invalid_argument, option + " " + std::to_string(value) + " is out of range",
              std::to_string(least) + " to " + std::to_string(most));
}

}  // namespace

int default_kills(int seconds) { return std::min(5, kMostKillsPerSecond * seconds); }

Status check_options(const DemoOptions& options) {
  if (options.seconds < 1 || options.seconds > kMostSeconds) {
    return out_of_range("--seconds", options.seconds, 1, kMostSeconds);
  }
  if (options.writers < 1 || options.writers > kMostWriters) {
    return out_of_range("--writers", options.writers, 1, kMostWriters);
  }
  // Between two kills the relay must start and deliver something.
  const int most_kills = kMostKillsPerSecond * options.seconds;
  if (options.kills < 0 || options.kills > most_kills) {
    return out_of_range("--kills", options.kills, 0, most_kills);
  }
  if (options.sink != "file" && options.sink != "kafka") {
    return fail(Errc::invalid_argument, "--sink " + options.sink + " is not known to the demo",
                "file or kafka");
  }
  if (options.sink == "kafka" && options.brokers.empty()) {
    return fail(Errc::invalid_argument, "--sink kafka needs --brokers", "--brokers localhost:9092");
  }
  if (options.sink != "kafka" && !options.brokers.empty()) {
    return fail(Errc::invalid_argument, "--brokers without --sink kafka",
                "add --sink kafka, or leave the brokers out");
  }
#ifndef OUTBOX_WITH_KAFKA
  if (options.sink == "kafka")
    return fail(Errc::unsupported, "this program was built without Kafka");
#endif
  const std::string& store = options.store;
  const bool sqlite = store.empty() || store.starts_with("sqlite:");
  const bool postgres = store.starts_with("postgresql://") || store.starts_with("postgres://");
  if (!sqlite && !postgres) {
    return fail(Errc::invalid_argument, "--store is not understood",
                "postgresql://... or sqlite:PATH");
  }
#ifndef OUTBOX_WITH_SQLITE
  if (sqlite)
    return fail(Errc::unsupported, "this program was built without SQLite",
                "--store postgresql://...");
#endif
#ifndef OUTBOX_WITH_POSTGRES
  if (postgres) return fail(Errc::unsupported, "this program was built without PostgreSQL");
#endif
  return {};
}

}  // namespace outbox::demo
