// outbox work: does tasks with the handlers of the configuration, until it is stopped. A thin
// wrapper around outbox::Worker.
#include <algorithm>
#include <memory>
#include <outbox/worker.hpp>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/log.hpp"
#include "base/signals.hpp"
#include "base/supervisor.hpp"
#include "cli/consuming.hpp"
#include "cli/ending.hpp"
#include "cli/exit.hpp"
#include "cli/monitoring.hpp"
#include "cli/verbs.hpp"
#include "config/settings_page.hpp"
#include "config/tasks.hpp"
#include "metrics/relay_metrics.hpp"
#include "store/url.hpp"
#include "task/exec_handler.hpp"
#include "task/sink_handler.hpp"

namespace outbox::cli {
namespace {

struct WorkOptions {
  std::vector<std::string> queues;
  bool wait{false};
  bool consume{false};
};

/// The tasks of the configuration, or only those of the queues that were asked for.
std::vector<config::TaskSpec> choose_tasks(const WorkOptions& options,
                                           const config::Loaded& loaded) {
  std::vector<config::TaskSpec> tasks = loaded.config.tasks;
  if (tasks.empty())
    throw Failure(
        kUsage, "the configuration has no handlers",
        "[task.\"report.make\"] with command = [\"/usr/local/bin/make-report\"], or with handler = \"http\" or \"smtp\"");
  for (const std::string& queue : options.queues) {
    const bool any = std::any_of(tasks.begin(), tasks.end(),
                                 [&](const auto& task) { return task.queue == queue; });
    if (!any) throw Failure(kUsage, "--queue " + queue + ": no [task] section is of this queue");
  }
  if (options.queues.empty()) return tasks;
  std::erase_if(tasks, [&](const auto& task) {
    return std::find(options.queues.begin(), options.queues.end(), task.queue) ==
           options.queues.end();
  });
  return tasks;
}

Handlers::Run make_run(const config::TaskSpec& task) {
  if (task.handler != "exec") return must(task::sink_handler(task.delivery));
  task::ChildOptions child{.command = task.command};
  child.command.front() = must(config::find_program(child.command.front()));
  return task::exec_handler(std::move(child));
}

/// The schedules of a queue. The first worker also has those of queues without a handler here,
/// whose tasks others do.
std::vector<Schedule> choose_schedules(const std::string& queue, bool first,
                                       const config::Loaded& loaded) {
  std::vector<Schedule> mine;
  for (const Schedule& schedule : loaded.config.worker.schedules) {
    const auto& tasks = loaded.config.tasks;
    const bool elsewhere = std::none_of(
        tasks.begin(), tasks.end(), [&](const auto& task) { return task.queue == schedule.queue; });
    if (schedule.queue == queue || (first && elsewhere)) mine.push_back(schedule);
  }
  return mine;
}

/// Makes the worker of a queue, with its handlers. Each queue has one, since a type of one queue is
/// unknown in another.
std::unique_ptr<Worker> make_worker(const config::Loaded& loaded, const std::string& queue,
                                    const std::vector<config::TaskSpec>& tasks, bool first) {
  WorkerOptions options = loaded.config.worker;
  options.relay = loaded.config.relay;
  options.queues = {queue};
  options.schedules = choose_schedules(queue, first, loaded);
  Handlers handlers;
  for (const config::TaskSpec& task : tasks) {
    if (task.queue != queue) continue;
    Handlers::Handler handler;
    handler.type = task.type;
    handler.options = {.deadline = task.deadline,
                       .delays = task.delays,
                       .max_running = task.max_running,
                       .rate = task.rate,
                       .slow = task.slow};
    handler.run = make_run(task);
    handlers.add(std::move(handler));
  }
  return must(Worker::create(std::move(options), std::move(handlers)));
}

/// With `--wait`, retries while the store is unavailable, and returns false if a signal comes
/// meanwhile. Other errors end the verb.
[[nodiscard]] bool start(const WorkOptions& options, const config::Loaded& loaded, Worker& worker,
                         Signals& signals, const Supervisor& supervisor) {
  return start_when_possible(options.wait, signals, supervisor, [&] {
    (void)Context::checked_store(loaded);
    signals.end_at(2);  // tasks may run before start() returns
    must(repeatable(worker.start()));
  });
}

using Workers = std::vector<std::unique_ptr<Worker>>;

/// Makes all workers before one starts, so that an error in a handler is found before a task runs.
Workers make_workers(const config::Loaded& loaded, const std::vector<config::TaskSpec>& tasks) {
  std::set<std::string> queues;
  for (const config::TaskSpec& task : tasks) queues.insert(task.queue);
  Workers workers;
  for (const std::string& queue : queues)
    workers.push_back(make_worker(loaded, queue, tasks, workers.empty()));
  return workers;
}

std::vector<RelayReport> read_reports(const Workers& workers) {
  std::vector<RelayReport> reports;
  for (const auto& worker : workers) reports.push_back(worker->report());
  return reports;
}

/// Stops these workers, which share one grace period.
StopReport stop_all(std::span<const std::unique_ptr<Worker>> workers,
                    std::chrono::milliseconds grace) {
  std::vector<StopReport> reports(workers.size());
  {
    std::vector<std::jthread> stopping;
    for (std::size_t i = 0; i < workers.size(); ++i)
      stopping.emplace_back([&, i] { reports[i] = workers[i]->stop(grace); });
  }
  StopReport all{.drained = true, .abandoned = 0};
  for (const StopReport& report : reports) {
    all.drained = all.drained && report.drained;
    all.abandoned += report.abandoned;
  }
  return all;
}

/// Starts the workers in turn, and works until a signal comes. Those that have started may run
/// tasks while a later one still waits for the store or fails, so they are always stopped within
/// the grace period.
int work_until_signal(const WorkOptions& options, const config::Loaded& loaded,
                      const Workers& workers, const ConsumersOfConfig& consumers, Signals& signals,
                      const Supervisor& supervisor, std::jthread& limit) {
  std::size_t started = 0;
  const auto stop = [&] {
    supervisor.stopping();
    limit = limit_stop(loaded.config.worker_grace);
    stop_consumers(consumers);  // They make tasks, which nobody would do.
    return stop_in_order(
        [&](std::chrono::milliseconds grace) {
          return stop_all(std::span(workers).first(started), grace);
        },
        loaded.config.worker_grace,
        {.drained = "stopped, no task runs, and all ends are noted",
         .abandoned = "stopped while tasks ran, they run again with no attempt counted"});
  };
  try {
    while (started < workers.size() &&
           start(options, loaded, *workers[started], signals, supervisor))
      ++started;
  } catch (const Failure&) {
    if (started > 0) (void)stop();
    throw;
  }
  if (started == 0) throw Failure(kInterrupted, "interrupted before it started");
  try {
    for (const auto& consumer : consumers) must(consumer->start());
  } catch (const Failure&) {
    (void)stop();
    throw;
  }
  supervisor.ready("working");
  supervisor.wait(signals, [&] {
    return metrics::lives(read_reports(workers)) && metrics::live(consumer_reports(consumers));
  });
  return stop();
}

int work(const WorkOptions& options, const Context& context) {
  const auto loaded = context.configuration(Subscriptions::unused, Tasks::used,
                                            options.consume ? Consumers::used : Consumers::unused);
  (void)Context::store_options(loaded);
  const std::vector<config::TaskSpec> tasks = choose_tasks(options, loaded);
  const Supervisor supervisor;
  Signals signals(kInterrupted);
  signals.end_at(1);
  log_warnings(loaded);
  log::info("starting", {{"version", OUTBOX_VERSION},
                         {"store", store::shown_url(loaded.config.relay.store_url)},
                         {"config", loaded.file.empty() ? "none" : loaded.file},
                         {"types", tasks.size()}});
  std::jthread limit;  // joined after the workers are destroyed, which may hang
  const Workers workers = make_workers(loaded, tasks);
  const ConsumersOfConfig consumers =
      options.consume ? make_consumers(loaded, {}) : ConsumersOfConfig();
  const auto monitor = start_monitor(
      loaded, [&workers] { return read_reports(workers); },
      [&consumers] { return consumer_reports(consumers); });
  return work_until_signal(options, loaded, workers, consumers, signals, supervisor, limit);
}

}  // namespace

void add_work(CLI::App& root, Context& context) {
  auto options = std::make_shared<WorkOptions>();
  CLI::App& verb =
      add_verb(root, "work", "Do tasks with the handlers of the configuration, until stopped",
               [options, &context] { return work(*options, context); });
  add_option(verb, "--queue", &options->queues, "NAME",
             "Work off this queue only; can be given again");
  add_option(verb, "--consume", &options->consume, {},
             "Run the consumers of the configuration, too (outbox consume)");
  add_option(verb, "--wait", &options->wait, {},
             "Keep trying while the store cannot be reached, instead of exit 5");
  add_footer(
      verb,
      "SIGTERM, SIGINT or SIGHUP stops it when the tasks that run have ended, at the latest after worker.grace: exit 0 when all\n"
      "have, 4 when not: those are told to stop and run again, with no attempt counted. A second signal ends it at once.\n"
      "It reads its configuration at start only.\n\n"
      "Settings ([worker] in the configuration; default; range):\n" +
          config::settings_help("worker") +
          "\nFor those who watch it ([http], [metrics] and [history]):\n" +
          config::settings_help("http") + config::settings_help("metrics") +
          config::settings_help("history"));
  add_example(verb, "outbox work -c /etc/outbox/outbox.toml --wait");
}

}  // namespace outbox::cli
