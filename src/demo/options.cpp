#include "demo/options.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "store/url.hpp"

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
  // The default is a SQLite file.
  Status store = store::check_url(options.store.empty() ? "sqlite:shop.db" : options.store);
  if (!store) store.error().message.insert(0, "--store ");
  return store;
}

}  // namespace outbox::demo
