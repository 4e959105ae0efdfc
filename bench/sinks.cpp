// sinks: for each broker that --to names, how fast a backlog in PostgreSQL is delivered to it,
// against a bare loop of the same client library that publishes from memory; and the time from just
// before a writer sends COMMIT to a consumer, at 1,000 events a second.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <stop_token>
#include <thread>

#include "bench/bench.hpp"
#include "bench/latency.hpp"
#include "bench/postgres_fixture.hpp"
#include "support/destination.hpp"
#include "support/failure.hpp"
#include "support/temp_dir.hpp"

namespace outbox::bench {
namespace {

using test::Destination;
using test::give_up;

constexpr double kShareOfBare = 0.7;
constexpr double kEnough = 250'000;
constexpr double kLatencyP99Ms = 15;

/// Makes a new destination of its own at an address such as "redis=redis://localhost".
std::unique_ptr<Destination> new_destination(const std::string& to) {
  const std::size_t equals = to.find('=');
  if (equals == std::string::npos)
    give_up(Errc::invalid_argument, "--to " + to + ": KIND=ADDRESS is expected",
            "--to redis=redis://localhost:6379");
  auto made = test::make_destination(to.substr(0, equals) + ":" + test::TempDir().name() + "@" +
                                     to.substr(equals + 1));
  made->open();
  return made;
}

double bare_rate(const std::string& to, std::int64_t events) {
  const auto destination = new_destination(to);
  const std::string body(200, 'x');
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < events; ++i) {
    destination->send(std::to_string(i % 10000), body);
    if (i % 1000 == 0) destination->poll();
  }
  destination->flush();
  return static_cast<double>(events) /
         std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Drain drain_to(const std::string& to, PostgresFixture& log, const std::string& subscription) {
  const std::int64_t events = log.options().events;
  const double bare = bare_rate(to, events);
  const auto destination = new_destination(to);
  Drain drain = log.drain(destination->subscription(subscription), events);
  drain.bare = bare;
  // The broker counts the messages, so that the relay's own count is not trusted.
  if (const auto count = destination->count(); count != static_cast<std::size_t>(events)) {
    give_up(Errc::corrupt,
            fmt::format("{} holds {} messages, not {}", destination->place(), count, events));
  }
  return drain;
}

/// Notes when each message arrived.
class TimedConsumer {
 public:
  TimedConsumer(Destination& destination, Arrivals& arrivals) {
    const auto arrived = [&arrivals](std::string_view body) { arrivals.arrived(body); };
    destination.read(arrived, std::chrono::milliseconds(0));  // What cannot be read fails here.
    thread_ = std::jthread([&destination, arrived](const std::stop_token& stop) {
      while (!stop.stop_requested()) destination.read(arrived, std::chrono::milliseconds(50));
    });
  }

 private:
  std::jthread thread_;
};

}  // namespace

std::vector<Figure> bench_sinks(const BenchOptions& options) {
  PostgresFixture log(options);
  std::vector<Figure> figures;
  log.fill(options.events);
  for (const std::string& to : options.to) {
    const std::string name = "sinks." + to.substr(0, to.find('='));
    const Drain all = median_drain(options.repeats, [&](int number) {
      Drain drain = drain_to(to, log, fmt::format("sinks-{}", number));
      log.say(fmt::format("{}: {:.0f} events/s, bare loop {:.0f}, {:.2f} us CPU per event", name,
                          drain.events_per_second, drain.bare, drain.cpu_us_per_event));
      return drain;
    });
    figures.push_back(Figure(name, all.events_per_second, "events/s")
                          .beside(all.bare)
                          .at_least(std::min(kEnough, kShareOfBare * all.bare)));
    figures.emplace_back(name + ".cpu", all.cpu_us_per_event, "us/event");
    figures.emplace_back(name + ".memory", all.peak_rss_mib, "MiB");
  }
  for (const std::string& to : options.to) {
    const auto measured = [&](bool wake_up) {
      const auto destination = new_destination(to);
      const SubscriptionSpec spec = destination->subscription("latency");
      Arrivals arrivals;
      const TimedConsumer consumer(*destination, arrivals);
      return measure_latencies(log, spec, wake_up, arrivals);
    };
    const auto latencies = latency_figures(log, "sinks." + to.substr(0, to.find('=')) + ".latency",
                                           {.p99_ms = kLatencyP99Ms}, measured);
    figures.insert(figures.end(), latencies.begin(), latencies.end());
  }
  return figures;
}

}  // namespace outbox::bench
