// The facade: a relay of the queues' subscriptions, whose sinks are the handlers.
#include <memory>
#include <outbox/worker.hpp>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/field_error.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "event/group.hpp"
#include "event/retry_policy.hpp"
#include "event/task.hpp"
#include "event/task_queue.hpp"
#include "task/queue_sink.hpp"
#include "task/run_keeper.hpp"
#include "task/ticker.hpp"

namespace outbox {
namespace {

constexpr std::size_t kMostThreads = 1024;
constexpr std::chrono::milliseconds kShortestHeartbeat{100};
constexpr std::chrono::milliseconds kShortestRowAfter{10};

Status check_delays(const std::vector<std::string>& delays) {
  SubscriptionSpec spec;
  spec.delays = delays;
  FieldErrors errors;
  event::RetryPolicy::check(spec, errors);
  return errors.status();
}

Status check_schedules(const std::vector<Schedule>& schedules) {
  std::set<std::string_view> names;
  for (const Schedule& schedule : schedules) {
    if (Status status = validate(schedule); !status)
      return bad_field("schedules", in_quotes(schedule.name) + ": " + status.error().message,
                       status.error().hint);
    if (!names.insert(schedule.name).second)
      return bad_field("schedules", in_quotes(schedule.name) + " is there twice");
  }
  return {};
}

Status check(const WorkerOptions& options, const Handlers& handlers) {
  if (options.queues.empty()) return bad_field("queues", "is empty", "name at least one");
  for (const std::string& queue : options.queues) {
    if (Status status = event::check_queue(queue); !status) return status;
  }
  if (options.threads == 0 || options.threads > kMostThreads)
    return bad_field("threads", "must be from 1 to " + std::to_string(kMostThreads));
  if (options.delays.empty())
    return bad_field("delays", "is empty", "at least one pause, such as 1min");
  if (options.row_after < kShortestRowAfter)
    return bad_field("row_after", "must be at least 10 ms", "default: 1s");
  if (options.heartbeat < kShortestHeartbeat)
    return bad_field("heartbeat", "must be at least 100 ms", "default: 10s");
  if (handlers.all().empty()) return bad_field("handlers", "there is none", "call Handlers::on()");
  for (const Handlers::Handler& handler : handlers.all()) {
    if (handler.options.deadline <= std::chrono::milliseconds(0))
      return bad_field("handlers", handler.type + ": the deadline must be positive");
    if (Status status = check_delays(handler.options.delays); !status)
      return bad_field("handlers", handler.type + ": " + status.error().message);
  }
  if (Status status = check_schedules(options.schedules); !status) return status;
  return check_delays(options.delays);
}

/// One for all priorities, so that a worker has the same lanes of each.
std::string group_of(const std::string& queue) {
  return event::custom_group(event::subscription_of_queue(queue));
}

/// Where the settings of the worker lead; whoever starts last with other ones sets them for all.
SubscriptionSpec subscription_of(const std::string& queue, std::size_t priority,
                                 const WorkerOptions& options) {
  SubscriptionSpec spec;
  spec.name = event::subscription_of_queue(queue, priority);
  spec.sink = "custom";
  spec.group = group_of(queue);
  spec.aggregate_types = {event::aggregate_type_of(queue, priority)};
  spec.delays = options.delays;
  spec.retry_jitter = options.jitter;
  return spec;
}

task::Runner::Types types_of(const Handlers& handlers, const WorkerOptions& options) {
  task::Runner::Types types;
  for (const Handlers::Handler& handler : handlers.all()) {
    const auto& delays = handler.options.delays.empty() ? options.delays : handler.options.delays;
    types.push_back(
        std::make_shared<task::TaskType>(handler, task::RetrySchedule(delays, options.jitter)));
  }
  return types;
}

/// Its threads, which all priorities share, and a sink for each of them.
Status add_queue(const std::string& queue, const Handlers& handlers, const WorkerOptions& options,
                 task::RunKeeper& keeper, Relay& relay) {
  task::Runner::Options threads{.threads = options.threads, .priorities = {}};
  threads.result_bytes = options.result_bytes;
  task::RunKeeper::Queue kept;
  for (std::size_t priority = 1; priority <= event::kPriorities; ++priority) {
    threads.priorities.push_back(priority);
    kept.subscriptions.push_back(event::subscription_of_queue(queue, priority));
  }
  const task::Runner::Types types = types_of(handlers, options);
  kept.runner = std::make_shared<task::Runner>(queue, types, threads);
  const task::QueueOptions taking{.threads = options.threads,
                                  .unknown_type_pause = options.unknown_type_pause,
                                  .row_after = options.row_after};
  for (task::Source source = 0; source < kept.subscriptions.size(); ++source) {
    auto sink = std::make_unique<task::QueueSink>(kept.runner, source, types, taking,
                                                  keeper.worker(), keeper.clock());
    if (Status status = relay.use(kept.subscriptions[source], std::move(sink)); !status)
      return status;
  }
  keeper.add(std::move(kept));
  return {};
}

}  // namespace

Result<std::unique_ptr<Worker>> Worker::create(WorkerOptions options, Handlers handlers) {
  if (Status status = check(options, handlers); !status) return pass(status);
  const std::set<std::string> queues(options.queues.begin(), options.queues.end());
  options.relay.groups.clear();
  options.relay.subscriptions.clear();
  for (const std::string& queue : queues) {
    // A worker serves nothing else, whatever subscriptions there are.
    options.relay.groups.push_back(group_of(queue));
    for (std::size_t priority = 1; priority <= event::kPriorities; ++priority)
      options.relay.subscriptions.push_back(subscription_of(queue, priority, options));
  }
  OUTBOX_TRY(std::unique_ptr<Relay> relay, Relay::create(options.relay));
  const task::RetrySchedule retries(options.delays, options.jitter);
  const store::StoreOptions store{.url = options.relay.store_url,
                                  .schema = options.relay.schema,
                                  .application = "outbox worker"};
  auto keeper = std::make_unique<task::RunKeeper>(
      EventId::generate(), options.relay.name.empty() ? process_name() : options.relay.name, store,
      task::KeeperOptions{.retries = retries, .heartbeat = options.heartbeat});
  for (const std::string& queue : queues) {
    if (Status status = add_queue(queue, handlers, options, *keeper, *relay); !status)
      return pass(status);
  }
  auto ticker = std::make_unique<task::Ticker>(options.schedules, queues, store);
  return std::unique_ptr<Worker>(
      new Worker(std::move(keeper), std::move(relay), std::move(ticker)));
}

Worker::Worker(std::unique_ptr<task::RunKeeper> keeper, std::unique_ptr<Relay> relay,
               std::unique_ptr<task::Ticker> ticker)
    : keeper_(std::move(keeper)), relay_(std::move(relay)), ticker_(std::move(ticker)) {}

Worker::~Worker() { (void)stop(std::chrono::milliseconds(0)); }

Status Worker::start() {
  if (Status status = relay_->start(); !status) return status;
  keeper_->start();
  ticker_->start();
  return {};
}

void Worker::request_stop() noexcept { relay_->request_stop(); }

StopReport Worker::stop(std::chrono::milliseconds grace) {
  const auto until = std::chrono::steady_clock::now() + grace;
  ticker_->request_stop();
  StopReport report = relay_->stop(grace);
  // What lasts was left to the keeper.
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      until - std::chrono::steady_clock::now());
  const std::size_t given_back = keeper_->stop(std::max(left, std::chrono::milliseconds(0)));
  ticker_->stop();
  report.abandoned += given_back;
  report.drained = report.drained && given_back == 0;
  return report;
}
RelayReport Worker::report() const { return relay_->report(); }

}  // namespace outbox
