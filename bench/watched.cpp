// watched: what metrics, history and continuous verification cost a relay: drain and latency with
// all of them, far more often than in production, beside the same without them; the latency while
// clients misbehave at /metrics; and the processor time of verification while it has a backlog.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "bench/bench.hpp"
#include "bench/latency.hpp"
#include "bench/postgres_fixture.hpp"
#include "bench/watchers.hpp"
#include "support/failure.hpp"

namespace outbox::bench {
namespace {

/// History is written, metrics are read and settlements are compared each second, where the
/// defaults are a minute, 15 s and 5 s.
constexpr std::chrono::milliseconds kOften{1000};
constexpr WatchOptions kWatchedOften{.scrape_every = kOften,
                                     .metrics_interval = kOften,
                                     .verify_every = kOften,
                                     .verify_after = kOften};

std::unique_ptr<Watchers> watch(const PostgresFixture& log, const Relay& relay) {
  return std::make_unique<Watchers>(log.options(), kWatchedOften,
                                    [&relay] { return relay.report(); });
}

double drain(PostgresFixture& log, bool watched) {
  RelayOptions options = log.relay_options({.name = "watched", .sink = "null"});
  options.history_interval = watched ? kOften : std::chrono::milliseconds(0);
  const auto relay = test::must(Relay::create(options));
  double rate = 0;
  {
    const auto watchers = watched ? watch(log, *relay) : nullptr;
    rate = log.measure(*relay, log.options().events).events_per_second;
  }
  log.drop_subscriptions();
  return rate;
}

// ---- clients that misbehave

constexpr int kSlowClients = 200;
constexpr int kRequesters = 4;
/// Together they send 1,000 requests a second.
constexpr std::chrono::milliseconds kBetweenRequests{4};

/// A connection that sends a byte of a request that never ends, now and then.
class SlowClient {
 public:
  explicit SlowClient(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    // It goes on in the background.
    (void)::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  SlowClient(const SlowClient&) = delete;
  SlowClient& operator=(const SlowClient&) = delete;
  ~SlowClient() { ::close(socket_); }
  /// Returns whether the server still listens to it.
  [[nodiscard]] bool send() const { return ::send(socket_, "G", 1, MSG_NOSIGNAL) == 1; }

 private:
  const int socket_;
};

void stay_slow(int port, const std::stop_token& stop) {
  std::vector<std::unique_ptr<SlowClient>> clients(kSlowClients);
  while (!stop.stop_requested()) {
    for (auto& client : clients) {
      if (!client || !client->send()) client = std::make_unique<SlowClient>(port);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
}

/// Every tenth request is too large.
void ask_often(int port, const std::stop_token& stop) {
  constexpr std::array kPaths{"/metrics", "/livez", "/readyz", "/nothing"};
  httplib::Client client("127.0.0.1", port);
  const std::string large(100'000, 'x');
  auto next = std::chrono::steady_clock::now();
  for (std::size_t i = 0; !stop.stop_requested(); ++i) {
    if (i % 10 == 9) {
      (void)client.Get("/metrics", {{"X-Large", large}});
    } else {
      (void)client.Get(kPaths.at(i % kPaths.size()));
    }
    std::this_thread::sleep_until(next += kBetweenRequests);
  }
}

/// Misbehaves until it is destroyed.
class Abuse {
 public:
  explicit Abuse(std::unique_ptr<Watchers> watchers) : watchers_(std::move(watchers)) {
    const int port = watchers_->port();
    threads_.emplace_back([port](const std::stop_token& stop) { stay_slow(port, stop); });
    for (int i = 0; i < kRequesters; ++i)
      threads_.emplace_back([port](const std::stop_token& stop) { ask_often(port, stop); });
  }

 private:
  const std::unique_ptr<Watchers> watchers_;
  std::vector<std::jthread> threads_;
};

enum class Watched { no, often, abused };

double watched_latency(PostgresFixture& log, Watched how) {
  Beside beside{.history_interval = how == Watched::often ? kOften : std::chrono::milliseconds(0)};
  if (how != Watched::no) {
    beside.start = [&log, how](const Relay& relay) -> std::shared_ptr<void> {
      auto watchers = watch(log, relay);
      if (how == Watched::often) return watchers;
      return std::make_shared<Abuse>(std::move(watchers));
    };
  }
  const double p50 = quantile(measure_latencies(log, true, beside).event_ms, 0.5);
  log.drop_subscriptions();
  return p50;
}

/// The share of a core that verification uses while it compares a drained log.
double verify_share(PostgresFixture& log) {
  const auto relay =
      test::must(Relay::create(log.relay_options({.name = "watched", .sink = "null"})));
  (void)log.measure(*relay, log.options().events);
  const auto watchers = watch(log, *relay);
  std::this_thread::sleep_for(2 * kOften);  // The settlements get old enough.
  const double before = watchers->verify_seconds();
  const auto length = std::chrono::duration<double>(std::max(log.options().seconds, 10.0));
  std::this_thread::sleep_for(length);
  return (watchers->verify_seconds() - before) / length.count() * 100;
}

}  // namespace

std::vector<Figure> bench_watched(const BenchOptions& options) {
  std::vector<double> with;
  std::vector<double> without;
  double share = 0;
  {
    PostgresFixture log(options);
    log.fill(options.events);
    (void)drain(log, false);
    for (int i = 0; i < 2 * options.repeats; ++i) {
      // Each goes first in turn.
      for (const bool watched : {i % 2 == 0, i % 2 != 0})
        (watched ? with : without).push_back(drain(log, watched));
      log.say(fmt::format("watched: {:.0f} events/s, without {:.0f}", with.back(), without.back()));
    }
    share = verify_share(log);
  }
  std::map<Watched, std::vector<double>> p50;
  PostgresFixture log(options);
  for (int i = 0; i < 2 * options.repeats; ++i) {
    std::array ways{Watched::no, Watched::often, Watched::abused};
    std::rotate(ways.begin(), ways.begin() + i % 3, ways.end());
    for (const Watched way : ways) {
      log.admin().run(fmt::format("TRUNCATE {}.event", kSchema));
      p50[way].push_back(watched_latency(log, way));
    }
    log.say(fmt::format("watched: p50 {:.2f} ms, abused {:.2f}, without {:.2f}",
                        p50[Watched::often].back(), p50[Watched::abused].back(),
                        p50[Watched::no].back()));
  }
  const double alone = median(p50[Watched::no]);
  return {Figure("watched.drain", median(with), "events/s")
              .beside(median(without))
              .ratio_at_least(0.97),
          Figure("watched.latency.p50", median(p50[Watched::often]), "ms")
              .beside(alone)
              .ratio_at_most(1.03),
          Figure("watched.abused.latency.p50", median(p50[Watched::abused]), "ms")
              .beside(alone)
              .ratio_at_most(1.03),
          Figure("watched.verify.cpu", share, "% of a core").at_most(5)};
}

}  // namespace outbox::bench
