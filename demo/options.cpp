#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "demo/demo.hpp"
#include "sink/registry.hpp"
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

struct Kind {
  std::string_view name;
  const char* option;  ///< The option that says where it is; null if there is none.
  const char* example;
};
constexpr std::array kKinds{Kind{"file", nullptr, nullptr},
                            Kind{"kafka", "--brokers", "--brokers localhost:9092"},
                            Kind{"redis", "--url", "--url redis://localhost:6379"},
                            Kind{"nats", "--url", "--url nats://localhost:4222"},
                            Kind{"rabbitmq", "--url", "--url amqp://guest:guest@localhost"}};

Status check_sink(const DemoOptions& options) {
  const auto* const kind = std::find_if(kKinds.begin(), kKinds.end(),
                                        [&](const Kind& one) { return one.name == options.sink; });
  if (kind == kKinds.end()) {
    return fail(Errc::invalid_argument, "--sink " + options.sink + " is not known to the demo",
                "file, kafka, redis, nats or rabbitmq");
  }
  for (const auto& [option, given] : {std::pair("--brokers", !options.brokers.empty()),
                                      std::pair("--url", !options.url.empty())}) {
    const bool wanted = kind->option != nullptr && std::string_view(kind->option) == option;
    if (wanted && !given) {
      return fail(Errc::invalid_argument, "--sink " + options.sink + " needs " + option,
                  kind->example);
    }
    if (given && !wanted) {
      return fail(Errc::invalid_argument, std::string(option) + " with --sink " + options.sink,
                  "leave it out, or name the --sink that it belongs to");
    }
  }
  if (kind->option == nullptr) return {};
  // The broker's client may be missing from this build.
  SubscriptionSpec spec{.name = "demo", .sink = options.sink};
  const bool kafka = options.sink == "kafka";
  spec.sink_settings[kafka ? "brokers" : "url"] = kafka ? options.brokers : options.url;
  return sink::check_settings(spec);
}

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
  if (options.tasks && (options.naive || options.sink != "file" || !options.brokers.empty() ||
                        !options.url.empty())) {
    return fail(Errc::invalid_argument,
                options.naive ? "--naive with --tasks" : "a broker with --tasks",
                "tasks are done by workers of the demo; leave the other option out");
  }
  if (Status sink = check_sink(options); !sink) return sink;
  // The default is a SQLite file.
  Status store = store::check_url(options.store.empty() ? "sqlite:shop.db" : options.store);
  if (!store) store.error().message.insert(0, "--store ");
  return store;
}

}  // namespace outbox::demo
