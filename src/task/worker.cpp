// The facade: a relay of the queues' subscriptions, whose sinks are the handlers.
#include <memory>
#include <outbox/worker.hpp>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/event_fd.hpp"
#include "base/field_error.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "event/task.hpp"
#include "event/task_queue.hpp"
#include "history/history_job.hpp"
#include "subscription/group.hpp"
#include "subscription/retry_policy.hpp"
#include "task/queue_sink.hpp"
#include "task/run_tracker.hpp"
#include "task/runner.hpp"
#include "task/ticker.hpp"

namespace outbox {
namespace {

constexpr std::size_t kMostThreads = 1024;
constexpr std::chrono::milliseconds kShortestHeartbeat{100};
constexpr std::chrono::milliseconds kLongestDeadline = std::chrono::hours(24 * 366);
constexpr std::chrono::milliseconds kLongestGrace = kLongestDeadline;
constexpr std::chrono::milliseconds kShortestRowAfter{10};
/// The most rows of a priority and worker: with more, nothing is read. They are so many because
/// what is scheduled for next month must not stop what is to be done now.
constexpr std::size_t kMostRows = 1'000'000;

Status check_delays(const Delays& delays) {
  SubscriptionSpec spec;
  spec.delays = delays;
  FieldErrors errors;
  subscription::RetryPolicy::check(spec, errors);
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

/// A type with a limit is named in the filter of its subscription, so its name may have no
/// wildcard.
Status check_limits(const Handlers::Handler& handler) {
  if (!task::has_limit(handler.options)) return {};
  if (handler.type.find_first_of("*?") != std::string::npos)
    return bad_field("handlers", handler.type + ": a type with max_running or rate has * or ?",
                     "give the type another name");
  const Status rate = check_rate(handler.options.rate);
  if (rate) return {};
  return bad_field("handlers", handler.type + ": " + rate.error().message, rate.error().hint);
}

Status check(const WorkerOptions& options, const Handlers& handlers) {
  if (options.queues.empty()) return bad_field("queues", "is empty", "name at least one");
  for (const std::string& queue : options.queues) {
    OUTBOX_TRY(event::check_queue(queue));
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
    if (handler.options.deadline <= std::chrono::milliseconds(0) ||
        handler.options.deadline > kLongestDeadline)
      return bad_field("handlers",
                       handler.type + ": the deadline must be positive, and at most a year");
    if (Status status = check_delays(handler.options.delays); !status)
      return bad_field("handlers", handler.type + ": " + status.error().message);
    OUTBOX_TRY(check_limits(handler));
  }
  OUTBOX_TRY(check_schedules(options.schedules));
  return check_delays(options.delays);
}

/// One group for all priorities, so that a worker has the same lanes of each.
std::string group_name(const std::string& queue) {
  return subscription::custom_group(event::subscription_of_queue(queue));
}

/// The subscription that follows from the settings of the worker. The worker that starts last with
/// other settings sets them for all.
SubscriptionSpec make_subscription(const std::string& queue, std::size_t priority,
                                   const WorkerOptions& options) {
  SubscriptionSpec spec;
  spec.name = event::subscription_of_queue(queue, priority);
  spec.sink = "custom";
  spec.group = group_name(queue);
  spec.aggregate_types = {event::make_aggregate_type(queue, priority)};
  spec.delays = options.delays;
  spec.retry_jitter = options.jitter;
  spec.max_waiting = kMostRows;
  return spec;
}

/// All subscriptions of a queue, also those of types with a limit.
std::vector<SubscriptionSpec> make_subscriptions(const std::string& queue, const Handlers& handlers,
                                                 const WorkerOptions& options) {
  std::vector<SubscriptionSpec> all;
  for (std::size_t priority = 1; priority <= event::kPriorities; ++priority) {
    const SubscriptionSpec base = make_subscription(queue, priority, options);
    all.push_back(base);
    for (const Handlers::Handler& handler : handlers.all()) {
      if (task::has_limit(handler.options)) all.push_back(event::spec_of_type(base, handler.type));
    }
  }
  return all;
}

task::RunnerCore::Types make_types(const Handlers& handlers, const WorkerOptions& options) {
  task::RunnerCore::Types types;
  for (const Handlers::Handler& handler : handlers.all()) {
    const auto& delays = handler.options.delays.empty() ? options.delays : handler.options.delays;
    types.push_back(
        std::make_shared<task::TaskType>(handler, task::RetrySchedule(delays, options.jitter)));
  }
  return types;
}

/// The place of a subscription among those whose tasks the threads of its queue do.
task::Source add_source(task::RunnerCore& runner, const SubscriptionSpec& spec) {
  return runner.add_source(spec.name,
                           event::parse_task_place(spec.aggregate_types.front()).priority);
}

/// Adds the threads of a queue, which all its subscriptions share, and a sink for each of them,
/// also for those that others add later.
Status add_queue(const std::string& queue, const Handlers& handlers, const WorkerOptions& options,
                 task::RunTracker& tracker, Relay& relay) {
  const auto runner =
      task::make_runner(queue, make_types(handlers, options), {.threads = options.threads},
                        {.result_bytes = options.result_bytes,
                         .store_url = options.relay.store_url,
                         .schema = options.relay.schema});
  // A worker without lanes, too, looks after what dead workers left behind.
  for (const SubscriptionSpec& spec : make_subscriptions(queue, handlers, options))
    (void)add_source(*runner, spec);
  tracker.add(runner);
  task::QueueOptions taking{.threads = options.threads,
                            .unknown_type_pause = options.unknown_type_pause,
                            .row_after = options.row_after};
  const auto make = [runner, taking, worker = tracker.worker(), clock = tracker.clock()](
                        const SubscriptionSpec& spec) mutable -> Result<std::unique_ptr<Sink>> {
    if (!event::is_of_queue(spec)) return nullptr;
    const task::Source source = add_source(*runner, spec);
    if (source == task::kMostSources)
      return fail(
          Errc::unsupported,
          "subscription " + spec.name + ": a worker reads at most " +
              std::to_string(task::kMostSources) + " subscriptions of a queue",
          "each type with a limit, or that was paused, is read apart, with one subscription for "
          "each priority; its tasks wait, nothing is lost: give some of the types a queue of their own");
    taking.of_type = event::is_of_type(spec);
    return std::make_unique<task::QueueSink>(runner, source, taking, worker, clock);
  };
  return relay.use_for_group(group_name(queue), make);
}

}  // namespace

Result<std::unique_ptr<Worker>> Worker::create(WorkerOptions options, Handlers handlers) {
  OUTBOX_TRY(check(options, handlers));
  const std::set<std::string> queues(options.queues.begin(), options.queues.end());
  options.relay.groups.clear();
  options.relay.subscriptions.clear();
  for (const std::string& queue : queues) {
    // A worker serves nothing else, whatever subscriptions there are.
    options.relay.groups.push_back(group_name(queue));
    for (SubscriptionSpec& spec : make_subscriptions(queue, handlers, options))
      options.relay.subscriptions.push_back(std::move(spec));
  }
  const RelayOptions history = options.relay;
  options.relay.history_interval = std::chrono::milliseconds(0);  // The worker writes it.
  OUTBOX_TRY(std::unique_ptr<Relay> relay, Relay::create(options.relay));
  const task::RetrySchedule retries(options.delays, options.jitter);
  const store::StoreOptions store{.url = options.relay.store_url,
                                  .schema = options.relay.schema,
                                  .application = "outbox worker"};
  OUTBOX_TRY(EventFd bell, EventFd::create());
  auto tracker = std::make_unique<task::RunTracker>(
      EventId::generate(), store,
      task::RunTrackerOptions{
          .retries = retries,
          .name = options.relay.name.empty() ? process_name() : options.relay.name,
          .sharing = {.heartbeat = options.heartbeat}},
      std::move(bell));
  for (const std::string& queue : queues) {
    OUTBOX_TRY(add_queue(queue, handlers, options, *tracker, *relay));
  }
  auto ticker = std::make_unique<task::Ticker>(options.schedules, queues, store);
  return std::unique_ptr<Worker>(
      new Worker(std::move(tracker), std::move(relay), std::move(ticker), history));
}

Worker::Worker(std::unique_ptr<task::RunTracker> tracker, std::unique_ptr<Relay> relay,
               std::unique_ptr<task::Ticker> ticker, const RelayOptions& history)
    : tracker_(std::move(tracker)),
      relay_(std::move(relay)),
      ticker_(std::move(ticker)),
      history_(std::make_unique<history::HistoryJob>(history::history_options(history),
                                                     [this] { return report(); })) {}

Worker::~Worker() { (void)stop(std::chrono::milliseconds(0)); }

Status Worker::start() {
  history_->start();
  OUTBOX_TRY(relay_->start());
  tracker_->start();
  ticker_->start();
  return {};
}

void Worker::request_stop() noexcept {
  tracker_->claim_no_more();
  relay_->request_stop();
}

StopReport Worker::stop(std::chrono::milliseconds grace) {
  const auto until = std::chrono::steady_clock::now() + std::min(grace, kLongestGrace);
  ticker_->request_stop();
  tracker_->claim_no_more();
  StopReport report = relay_->stop(grace);
  // The relay has left runs that last to the tracker.
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      until - std::chrono::steady_clock::now());
  const std::size_t given_back = tracker_->stop(std::max(left, std::chrono::milliseconds(0)));
  ticker_->stop();
  report.abandoned += given_back;
  report.drained = report.drained && given_back == 0;
  history_->stop();
  return report;
}

RelayReport Worker::report() const {
  RelayReport report = relay_->report();
  tracker_->report(report);
  return report;
}

}  // namespace outbox
