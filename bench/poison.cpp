// poison: how fast the others are delivered while events are parked. The bad events are those of
// some keys, rejected by a destination in memory; every second event, each with its own key,
// refused by the sink before it sends anything; one event in ten, each with its own key, answered
// with 422 by a receiver of webhooks.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench.hpp"
#include "bench/memory_sink.hpp"
#include "bench/postgres_fixture.hpp"
#include "bench/receiver.hpp"
#include "event/key.hpp"
#include "support/failure.hpp"
#ifdef OUTBOX_WITH_KAFKA
#include "support/kafka.hpp"
#endif

namespace outbox::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kPoisonName = "poison";
constexpr const char* kBadType = "Bad";

/// Rejects the events of one key in `one_in`, or none if that is 0.
class RejectingSink final : public Sink {
 public:
  explicit RejectingSink(std::uint64_t one_in) : one_in_(one_in) {}
  [[nodiscard]] SinkTraits traits() const noexcept override { return {.name = "rejecting"}; }
  [[nodiscard]] Status open() override { return {}; }
  [[nodiscard]] std::size_t send(std::span<const Message> messages) override {
    for (const Message& message : messages) {
      Outcome outcome{.token = message.token, .kind = Outcome::Kind::acked};
      const auto key = event::key_hash(message.event->aggregate_type, message.event->aggregate_id);
      if (one_in_ != 0 && key % one_in_ == 0) {
        outcome.kind = Outcome::Kind::rejected;
        outcome.error.message = "rejected by the benchmark";
      }
      outcomes_.push_back(std::move(outcome));
    }
    return messages.size();
  }
  void receive(std::vector<Outcome>& outcomes) override {
    outcomes.insert(outcomes.end(), std::make_move_iterator(outcomes_.begin()),
                    std::make_move_iterator(outcomes_.end()));
    outcomes_.clear();
  }
  void purge() override {}
  void close() noexcept override {}

 private:
  const std::uint64_t one_in_;
  std::vector<Outcome> outcomes_;
};

/// A gapless sink that refuses the events of one type itself, as for an illegal topic.
std::unique_ptr<Sink> refusing_sink(std::string_view type) {
  return std::make_unique<MemorySink>(
      SinkTraits{.name = "refusing", .gapless = true},
      [type](std::span<const Message> batch, Outcome& failure) {
        const auto refused = std::find_if(batch.begin(), batch.end(), [&](const Message& message) {
          return message.event->event_type == type;
        });
        if (refused != batch.end()) {
          failure.kind = Outcome::Kind::rejected;
          failure.unsent = true;
          failure.error.message = "refused by the benchmark";
        }
        return static_cast<std::size_t>(refused - batch.begin());
      });
}

SubscriptionSpec parking(SubscriptionSpec spec) {
  spec.max_waiting = 10'000'000;
  spec.retry_base = std::chrono::hours(1);
  spec.retry_cap = std::chrono::hours(1);
  return spec;
}

SubscriptionSpec custom() { return {.name = kPoisonName, .sink = "custom"}; }

/// Rates per second until nothing is pending.
struct Rate {
  double delivered{0};
  double parked{0};
};

Rate rate_with(PostgresFixture& log, const SubscriptionSpec& spec, std::unique_ptr<Sink> sink) {
  const auto relay = test::must(Relay::create(log.relay_options(parking(spec))));
  if (sink) test::must(relay->use(spec.name, std::move(sink)));
  const auto start = Clock::now();
  const RunReport report = test::must(relay->run_once(std::chrono::minutes(20)));
  if (!report.settled) test::give_up(Errc::deadline_exceeded, report.reason);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const auto parked =
      std::stoll(log.admin().value(fmt::format("SELECT count(*) FROM {}.parked", kSchema)));
  log.admin().run(fmt::format("TRUNCATE {0}.parked, {0}.parked_key", kSchema));
  log.drop_subscriptions();
  return {.delivered = static_cast<double>(log.options().events - parked) / seconds,
          .parked = static_cast<double>(parked) / seconds};
}

/// Makes one event in `one_in` bad, with a key of its own.
Rows with_bad(int one_in) {
  const auto bad = [&](const std::string& then, const std::string& otherwise) {
    return fmt::format("CASE WHEN i % {} = 0 THEN {} ELSE {} END", one_in, then, otherwise);
  };
  Rows rows;
  rows.aggregate_id = bad("'bad' || i", rows.aggregate_id);
  rows.event_type = bad(fmt::format("'{}'", kBadType), rows.event_type);
  rows.headers = "(" + bad("'{\"suffix\": \" !\"}'", rows.headers) + ")::jsonb";
  return rows;
}

/// Measures the same log twice, in turns: with nothing rejected, and as it is.
using Measure = std::function<Rate(bool rejects)>;

Figure compared(PostgresFixture& log, const std::string& name, const Measure& measure) {
  std::vector<double> none;
  std::vector<double> others;
  for (int i = 0; i < log.options().repeats; ++i) {
    none.push_back(measure(false).delivered);
    const Rate rate = measure(true);
    others.push_back(rate.delivered);
    log.say(fmt::format("{}: none rejected {:.0f} per second; delivered {:.0f}, parked {:.0f}",
                        name, none.back(), rate.delivered, rate.parked));
  }
  return Figure(name, median(others), "events/s").beside(median(none)).ratio_at_least(0.5);
}

std::vector<Figure> of_keys(const BenchOptions& options) {
  PostgresFixture log(options);
  log.fill(options.events);
  const auto rate = [&](std::uint64_t one_in) {
    return rate_with(log, custom(), std::make_unique<RejectingSink>(one_in)).delivered;
  };
  std::vector<double> none;
  std::vector<double> one;
  std::vector<double> many;
  for (int i = 0; i < options.repeats; ++i) {
    none.push_back(rate(0));
    one.push_back(rate(10'000));
    many.push_back(rate(10));
    log.say(fmt::format(
        "others per second: none rejected {:.0f}, one key in 10,000 {:.0f}, one in 10 {:.0f}",
        none.back(), one.back(), many.back()));
  }
  return {
      Figure("poison.one-key", median(one), "events/s").beside(median(none)).ratio_at_least(0.9),
      Figure("poison.tenth", median(many), "events/s").beside(median(none)).ratio_at_least(0.9)};
}

std::vector<Figure> refused(const BenchOptions& options) {
  PostgresFixture log(options);
  log.fill(options.events, with_bad(2));
  std::vector<Figure> figures;
  figures.push_back(compared(log, "poison.refused", [&](bool rejects) {
    return rate_with(log, custom(), refusing_sink(rejects ? kBadType : ""));
  }));
#ifdef OUTBOX_WITH_KAFKA
  if (!options.brokers.empty()) {
    figures.push_back(compared(log, "poison.refused-kafka", [&](bool rejects) {
      const test::KafkaTopic topic(options.brokers, 1);
      SubscriptionSpec spec = topic.subscription(kPoisonName);
      if (rejects) spec.topic += "{header:suffix}";
      return rate_with(log, spec, nullptr);
    }));
  }
#endif
  return figures;
}

/// Measures a request for each event, for which a tenth of the events is enough.
Figure webhooks(const BenchOptions& options) {
  BenchOptions fewer = options;
  fewer.events = std::max<std::int64_t>(options.events / 10, 1);
  PostgresFixture log(fewer);
  log.fill(fewer.events, with_bad(10));
  return compared(log, "poison.http", [&](bool rejects) {
    const Receiver receiver(fmt::format("\r\nevent-type: {}\r\n", rejects ? kBadType : "none"));
    SubscriptionSpec spec{.name = kPoisonName, .sink = "http"};
    spec.sink_settings = {{"url", receiver.url()},
                          {"allow_http", "true"},
                          {"allow_networks", "127.0.0.0/8"},
                          {"concurrency", "128"}};
    spec.headers = {{"event-type", "{event_type}"}};
    return rate_with(log, spec, nullptr);
  });
}

}  // namespace

std::vector<Figure> bench_poison(const BenchOptions& options) {
  std::vector<Figure> figures = of_keys(options);
  for (Figure& figure : refused(options)) figures.push_back(std::move(figure));
  figures.push_back(webhooks(options));
  return figures;
}

}  // namespace outbox::bench
