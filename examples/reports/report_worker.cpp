// report_worker [PAGES [PAUSE_MS [crash]]]: makes the reports that report_service has ordered,
// until it is stopped. A report has PAGES pages (5), each of which takes PAUSE_MS (300). With
// "crash" the process dies after the COMMIT of each report, in the first run. Run as many of them
// as you like, and kill any of them at any time.
#include <libpq-fe.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <outbox/postgres.hpp>
#include <outbox/worker.hpp>
#include <string>
#include <thread>

#include "database.hpp"

namespace {

using reports::MakeReport;

struct Pace {
  int pages{5};
  std::chrono::milliseconds pause{300};
  bool crash{false};
};

outbox::TaskEnd make_report(const MakeReport& order, const outbox::TaskRun& run, const Pace& pace) {
  std::string text = "Report of " + order.month + " for " + order.customer + "\n";
  for (int page = 1; page <= pace.pages; ++page) {
    if (run.stop.stop_requested()) return outbox::TaskEnd::failed("was told to stop");
    run.progress(static_cast<std::size_t>(100 * (page - 1) / pace.pages),
                 "page " + std::to_string(page) + " of " + std::to_string(pace.pages));
    std::this_thread::sleep_for(pace.pause);
    text += "page " + std::to_string(page) + "\n";
  }
  const auto connection = reports::connect();
  outbox::postgres::Transaction tx(connection.get());
  // False: a run that died before its end was noted has made it.
  if (run.once(tx)) {
    reports::query(connection.get(), "INSERT INTO report (task, text) VALUES ($1, $2)",
                   std::array{run.id.str(), text});
  }
  tx.commit();
  if (pace.crash && run.attempt == 1) (void)std::raise(SIGKILL);
  return outbox::TaskEnd::done(std::to_string(pace.pages) + " pages");
}

}  // namespace

int main(int argc, char** argv) {
  Pace pace;
  if (argc > 1) pace.pages = std::atoi(argv[1]);
  if (argc > 2) pace.pause = std::chrono::milliseconds(std::atoi(argv[2]));
  pace.crash = argc > 3 && std::string(argv[3]) == "crash";
  // Waited for below; blocked before any thread is there, so that none of them gets it.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  outbox::Handlers handlers;
  handlers.on<MakeReport>([pace](const MakeReport& order, const outbox::TaskRun& run) {
    return make_report(order, run, pace);
  });
  outbox::WorkerOptions options;
  options.relay.store_url = reports::database_url();
  options.queues = {"reports"};
  options.threads = 2;
  options.delays = {std::chrono::seconds(1), std::chrono::seconds(5), std::chrono::seconds(30)};
  options.heartbeat =
      std::chrono::seconds(1);  // the reports of a dead worker begin again within 3 s
  auto worker = outbox::Worker::create(options, handlers);
  const outbox::Status started = worker ? (*worker)->start() : outbox::unexpected(worker.error());
  if (!started) {
    (void)std::fprintf(stderr, "%s\n", started.error().text().c_str());
    return 1;
  }
  int signal = 0;
  (void)sigwait(&ends, &signal);
  return (*worker)->stop(std::chrono::seconds(10)).drained ? 0 : 4;
}
