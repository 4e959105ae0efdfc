#include "bench/watchers.hpp"

#include <httplib.h>

#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "base/thread.hpp"
#include "bench/postgres_fixture.hpp"
#include "support/failure.hpp"

namespace outbox::bench {
namespace {

store::StoreOptions watched_store(const BenchOptions& options) {
  return {.url = options.store_url, .schema = kSchema, .application = "outbox-bench"};
}

std::unique_ptr<http::Monitor> start_monitor(const BenchOptions& options, const WatchOptions& watch,
                                             std::function<RelayReport()> report) {
  return test::must(http::Monitor::start(
      {.address = test::must(http::parse_address("127.0.0.1:0")),
       .token = {},
       .store = {.store = watched_store(options), .interval = watch.metrics_interval},
       .version = "bench",
       .reports = [report = std::move(report)] { return std::vector{report()}; }}));
}

/// Scrapes at once, and then with this pause.
void scrape(int port, std::chrono::milliseconds every, const std::stop_token& stop) {
  httplib::Client client("127.0.0.1", port);
  while (!stop.stop_requested()) {
    const auto answer = client.Get("/metrics");
    if (!answer || answer->status != 200)
      test::give_up(Errc::unavailable, "/metrics was not answered with 200");
    sleep_for(every, stop);
  }
}

}  // namespace

Watchers::Watchers(const BenchOptions& options, const WatchOptions& watch,
                   std::function<RelayReport()> report)
    : monitor_(start_monitor(options, watch, std::move(report))),
      verify_({.store = watched_store(options),
               .verifier = "bench",
               .after = watch.verify_after,
               .every = watch.verify_every}),
      scraper_([port = monitor_->address().port, every = watch.scrape_every](
                   const std::stop_token& stop) { scrape(port, every, stop); }) {}

double Watchers::verify_seconds() const {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "comm");
    std::string name;
    std::getline(file, name);
    if (name == "ob-verify") return cpu_seconds(task.path());
  }
  test::give_up(Errc::internal, "the thread of continuous verification is not there");
}

}  // namespace outbox::bench
