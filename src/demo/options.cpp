#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "demo/demo.hpp"
#include "store/url.hpp"

namespace outbox::demo {
namespace {

constexpr int kMostKillsPerSecond = 2;

struct Range {
  const char* option;
  int value;
  int least;
  int most;
};

}  // namespace

int default_kills(int seconds) { return std::min(5, kMostKillsPerSecond * seconds); }

Status check_options(const DemoOptions& options) {
  // Between two kills the relay must start and deliver something.
  const int most_kills = kMostKillsPerSecond * options.seconds;
  for (const Range& range : std::array{Range{"--seconds", options.seconds, 1, 3600},
                                       Range{"--writers", options.writers, 1, 64},
                                       Range{"--kills", options.kills, 0, most_kills}}) {
    if (range.value >= range.least && range.value <= range.most) continue;
    return fail(Errc::invalid_argument,
                std::string(range.option) + " " + std::to_string(range.value) + " is out of range",
                std::to_string(range.least) + " to " + std::to_string(range.most));
  }
  const bool kafka = options.sink == "kafka";
  if (!kafka && options.sink != "file") {
    return fail(Errc::invalid_argument, "--sink " + options.sink + " is not known to the demo",
                "file or kafka");
  }
  if (kafka && options.brokers.empty())
    return fail(Errc::invalid_argument, "--sink kafka needs --brokers", "--brokers localhost:9092");
  if (!kafka && !options.brokers.empty()) {
    return fail(Errc::invalid_argument, "--brokers without --sink kafka",
                "add --sink kafka, or leave the brokers out");
  }
#ifndef OUTBOX_WITH_KAFKA
  if (kafka) return fail(Errc::unsupported, "this program was built without Kafka");
#endif
  // The default is a SQLite file.
  Status store = store::check_url(options.store.empty() ? "sqlite:shop.db" : options.store);
  if (!store) store.error().message.insert(0, "--store ");
  return store;
}

}  // namespace outbox::demo
