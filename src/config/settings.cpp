#include "config/settings.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "format/format.hpp"
#include "schedule/schedule.hpp"
#include "sink/registry.hpp"
#include "source/registry.hpp"
#include "subscription/spec.hpp"

namespace outbox {

template <>
inline constexpr std::array<std::string_view, 2> kWords<PublishAfter>{"flushed", "replicated"};

}  // namespace outbox

namespace outbox::config {
namespace {

using namespace std::chrono_literals;

SettingRows<Config> store_rows() {
  return {
      {"store.url", &Config::relay, &RelayOptions::store_url,
       Traits{.type = SettingType::url, .default_note = "required", .secret = true},
       "Where the outbox is: postgresql://... or sqlite:PATH."},
      {"store.schema", &Config::relay, &RelayOptions::schema,
       "PostgreSQL schema of the outbox tables."},
  };
}

SettingRows<Config> relay_rows() {
  return {
      {"relay.name", &Config::relay, &RelayOptions::name,
       Traits{.default_note = "host name and process id"},
       "Name of this relay in `outbox status`."},
      {"relay.groups", &Config::relay, &RelayOptions::groups, Traits{.default_note = "all"},
       "Deliver only the subscriptions of these groups."},
      {"relay.page", &Config::relay, &RelayOptions::page_rows, Traits{.range = {1, 10000}},
       "Rows of the log per fetch."},
      {"relay.window_events", &Config::relay, &RelayOptions::window_events,
       Traits{.range = {1, 1'000'000}},
       "Events fetched but not settled, per subscription; at least one page."},
      {"relay.window_bytes", &Config::relay, &RelayOptions::window_bytes,
       Traits{.type = SettingType::size, .range = {1024, std::uint64_t{4} << 30U}},
       "Bytes fetched but not settled, per subscription."},
      {"relay.settle_interval", &Config::relay, &RelayOptions::settle_interval,
       Traits{.range = {1ms, 10s}},
       "Longest time before a delivered event is settled. After a crash of the relay, unsettled events are delivered again."},
      {"relay.settle_events", &Config::relay, &RelayOptions::settle_events,
       Traits{.range = {1, 100'000}}, "Settle earlier after this many events."},
      {"relay.lease", &Config::relay, &RelayOptions::lease, Traits{.range = {1s, 10min}},
       "How long a relay keeps the lanes without a heartbeat. Then another relay takes over from one that hangs."},
      {"relay.idle_poll", &Config::relay, &RelayOptions::idle_poll, Traits{.range = {1ms, 24h}},
       "Longest pause between polls while idle. A long one lets a serverless database sleep."},
      {"relay.wake_up", &Config::relay, &RelayOptions::wake_up,
       "Let commits wake the relay. PostgreSQL: not through a pooler in transaction mode."},
      {"relay.publish_after", &Config::relay, &RelayOptions::publish_after,
       "When events go out: \"flushed\", when a crash of the database cannot take them back, or \"replicated\", when a failover cannot either, because standbys have them on disk (PostgreSQL)."},
      {"relay.replicated", &Config::relay, &RelayOptions::replicated, Traits{.range = {1, 100}},
       "With \"replicated\": how many standbys must have flushed an event before it goes out."},
      {"relay.replicated_by", &Config::relay, &RelayOptions::replicated_by,
       Traits{.default_note = "any"},
       "The standbys that must all have flushed an event, by their application_name; then relay.replicated does not count."},
      {"relay.replicated_timeout", &Config::relay, &RelayOptions::replicated_timeout,
       Traits{.range = {0s, 24h}},
       "How long events wait for standbys. Then they go out without them, with an error in the log, until the standbys have caught up. 0: they wait for as long as it takes."},
      {"relay.feed", &Config::relay, &RelayOptions::feed,
       "How the relay learns of new events. wal: PostgreSQL's write-ahead log tells of commits, which needs wal_level = logical, a login with REPLICATION and `outbox migrate --with-wal`; without them it polls, and says so. auto: the same, and what is missing is no trouble."},
      {"relay.retention", &Config::relay, &RelayOptions::retention,
       Traits{.range = {0s, 3650 * 24h}},
       "How long events stay in the log after they were written, if all subscriptions have passed them. 0: they are removed as soon as all subscriptions have passed them."},
      {"relay.archive", &Config::relay, &RelayOptions::archive,
       Traits{.type = SettingType::path, .default_note = "none"},
       "A folder for files of the events that are removed, one JSON object per line."},
      {"relay.quota", &Config::relay, &RelayOptions::quota, Traits{.type = SettingType::size},
       "A subscription that holds back more of what could be removed is a problem in `outbox status`. Nothing is removed because of it."},
      {"relay.verify", &Config::verify,
       "Compare new settlements with the log all the time. A difference is an error in the log, in `outbox status` and in outbox_ledger_differences. Takes at most 5 % of a core; of several relays one does it."},
      {"relay.verify_after", &Config::verify_after, Traits{.range = {1s, 24h}},
       "How old a settlement is when it is compared. Longer than relay.lease: a relay that loses its lanes may have written settlements that do not count."},
      {"relay.grace", &Config::grace, Traits{.range = {0s, 1h}},
       "How long to wait for events in flight after SIGTERM or SIGINT. The rest is delivered again."},
  };
}

SettingRows<Config> worker_rows() {
  return {
      {"worker.threads", &Config::worker, &WorkerOptions::threads, Traits{.range = {1, 1024}},
       "How many tasks run at once, of each queue."},
      {"worker.delays", &Config::worker, &WorkerOptions::delays,
       "Pauses after failed runs: n pauses are n retries, then the task is dead."},
      {"worker.jitter", &Config::worker, &WorkerOptions::jitter, Traits{.range = {0, 50}},
       "Percent by which each pause is longer or shorter, at random."},
      {"worker.row_after", &Config::worker, &WorkerOptions::row_after,
       Traits{.range = {10ms, 10min}},
       "A run that lasts longer gets a row, which shows it, and with which it goes on when the lanes of its worker change."},
      {"worker.heartbeat", &Config::worker, &WorkerOptions::heartbeat,
       Traits{.range = {100ms, 10min}},
       "Of runs that have a row. Those of a worker without three of them in a row count as failed, and run again elsewhere after the next delay."},
      {"worker.result_bytes", &Config::worker, &WorkerOptions::result_bytes,
       Traits{.type = SettingType::size, .range = {0, std::uint64_t{1} << 20U}},
       "A larger result of a task is not kept."},
      {"worker.unknown_type_pause", &Config::worker, &WorkerOptions::unknown_type_pause,
       Traits{.range = {10ms, 24h}},
       "How long a task waits whose type has no handler, before that is looked at again."},
      {"worker.grace", &Config::worker_grace, Traits{.range = {0s, 24h}},
       "How long to wait for tasks that run after SIGTERM or SIGINT. The others are told to stop and run again, with no attempt counted."},
  };
}

SettingRows<TaskSpec> task_rows() {
  return {
      {"queue", &TaskSpec::queue,
       "Where tasks of this type are: letters, digits, '-', '_' and '.'."},
      {"handler", &TaskSpec::handler, Traits{.choices = {"exec", "http", "smtp"}},
       "What does them. exec: a program, with the payload as its input. http: a request. smtp: a mail."},
      {"command", &TaskSpec::command, Traits{.default_note = "required"},
       "Of exec: the program and its arguments. No shell; a program without a path is looked for in PATH."},
      {"deadline", &TaskSpec::deadline, Traits{.range = {1ms, 30 * 24h}},
       "A program that runs longer gets SIGTERM, and 5s later SIGKILL; a request or a mail is given up. How it then ends counts."},
      {"delays", &TaskSpec::delays, Traits{.default_note = "those of worker.delays"},
       "The pauses after failed runs of this type: n pauses are n retries, then it is dead."},
      {"max_running", &TaskSpec::max_running, Traits{.range = {0, 1000}},
       "So many runs of this type at once in each worker; what cannot begin holds no other type up. 0: no limit."},
      {"rate", &TaskSpec::rate, Traits{.default_note = "no limit"},
       "So many runs of this type begin, like \"200/s\", \"30/min\" or \"1000/h\": of all workers together."},
      {"slow", &TaskSpec::slow,
       "Its runs have a row from the beginning, not after worker.row_after: they are seen at once, and what their worker was doing when it died is known."},
  };
}

SettingRows<ConsumerSpec> consumer_rows() {
  using C = ConsumerSpec;
  return {
      {"source", &C::source, Traits{.required = true},
       "The broker: " + source::kind_names() +
           ". Its connection has the settings of the sink of this name, in a table below the section."},
      {"read", &C::read, Traits{.required = true},
       "The topics, queues or streams to read. In names of topics * and ? stand for any characters."},
      {"group", &C::group, Traits{.default_note = "the name of the consumer"},
       "The consumer group at the broker, whose members share the messages."},
      {"start", &C::start, "Where a new group begins."},
      {"queue", &C::queue, "The queue of the tasks that the messages become."},
      {"id", &C::id, Traits{.default_note = "where the known formats have it"},
       "Where a message has its id: \"header:NAME\", \"json:PATH\", or \"place\", its place and time at the broker."},
      {"type", &C::type, Traits{.default_note = "where the known formats have it"},
       "Where it has the type of its task: \"header:NAME\", \"json:PATH\" or \"text:TEXT\"."},
      {"key", &C::key, Traits{.default_note = "where the known formats have it"},
       "Where it has its key: tasks of one key run in order."},
      {"seq", &C::seq, Traits{.default_note = "where the known formats have it"},
       "Where it has its number among those of its key, for skip_older."},
      {"skip_older", &C::skip_older,
       "Leaves out a message whose number is below the highest one of its key: for messages that each carry the whole state."},
      {"max_pending", &C::max_pending, Traits{.range = {1, 1'000'000'000}},
       "The consumer pauses when more tasks than these wait in the queue."},
      {"batch", &C::batch, Traits{.range = {1, 10'000}}, "The most messages in one transaction."},
  };
}

SettingRows<Schedule> schedule_rows() {
  return {
      {"queue", &Schedule::queue, "Of its tasks."},
      {"type", &Schedule::type, Traits{.default_note = "required"}, "Of its tasks."},
      {"payload", &Schedule::payload, "Of its tasks, the same each time."},
      {"content_type", &Schedule::content_type, "The media type of the payload."},
      {"key", &Schedule::key, Traits{.default_note = "none"},
       "With a key, a task waits until the one of the tick before has ended."},
      {"headers", &Schedule::headers, Traits{.default_note = "none"},
       "Further headers of its tasks."},
      {"cron", &Schedule::cron, Traits{.default_note = "none"},
       "Minute, hour, day of month, month, day of week: \"30 8 * * mon-fri\"; or @hourly, @daily, @weekly, @monthly, @yearly. Either this or every."},
      {"every", &Schedule::every, Traits{.default_note = "none"},
       "The time between ticks, such as \"15min\", from 1s to 366d. They are at its multiples since 1970, UTC."},
      {"time_zone", &Schedule::time_zone,
       "What cron means: a name of the tz database such as \"Europe/Berlin\"."},
      {"missed", &Schedule::missed,
       "Of ticks at which no worker ran: one task however many there were; none that is more than 1min late; each of the newest 1000."},
  };
}

SettingRows<Config> http_rows() {
  return {
      {"http.listen", &Config::http_listen, Traits{.default_note = "none"},
       "Where `outbox relay` and `outbox work` answer /metrics, /livez and /readyz, such as \"127.0.0.1:9464\"."},
      {"http.token", &Config::http_token, Traits{.default_note = "none", .secret = true},
       "/metrics answers only requests with the header \"Authorization: Bearer TOKEN\". Required if other machines can reach http.listen."},
      {"metrics.interval", &Config::metrics_interval, Traits{.range = {1s, 1h}},
       "How often the store is asked for what its metrics say."},
  };
}

SettingRows<Config> history_rows() {
  return {
      {"history.keep", &Config::relay, &RelayOptions::history, Traits{.range = {0s, 3650 * 24h}},
       "How long is kept what relays and workers did, for `outbox status --since`. 0: this process writes and removes nothing of it."},
      {"history.interval", &Config::relay, &RelayOptions::history_interval,
       Traits{.range = {100ms, 1h}},
       "A relay writes a row for each so long a time and subscription, a worker also for each type of task; none while nothing happens."},
  };
}

SettingRows<Config> audit_rows() {
  return {
      {"inbox.retention", &Config::relay, &RelayOptions::inbox_retention,
       Traits{.range = {1h, 36500 * 24h}},
       "How long messages that consumers have received are remembered. What a broker delivers again later happens again."},
      {"audit.keep", &Config::relay, &RelayOptions::audit_keep, Traits{.range = {24h, 36500 * 24h}},
       "How long `outbox audit` knows who changed what."},
  };
}

SettingRows<Config> log_rows() {
  return {
      {"log.level", &Config::log_level,
       Traits{.choices = {"debug", "info", "warn", "error", "off"}},
       "The lowest level that is logged (to stderr)."},
      {"log.format", &Config::log_format, Traits{.choices = {"text", "json"}},
       "Format of log lines."},
  };
}

/// All sinks without "custom", the sink of an application with its own relay.
std::vector<std::string_view> sink_names() {
  std::vector<std::string_view> names;
  for (const auto& kind : sink::kinds()) names.emplace_back(kind.name);
  return names;
}

SettingRows<SubscriptionSpec> spec_rows() {
  return {
      {"sink", &SubscriptionSpec::sink, Traits{.choices = sink_names(), .required = true},
       "The destination. Its settings are in the table [subscription.NAME.SINK]."},
      {"group", &SubscriptionSpec::group, Traits{.default_note = "default"},
       "The relays that serve this group share its subscriptions' work. Not for sink file, which has a group of its own."},
      {"event_types", &SubscriptionSpec::event_types, Traits{.default_note = "all"},
       "Globs for event_type ('*' matches any run of characters, '?' one); one of them must match."},
      {"aggregate_types", &SubscriptionSpec::aggregate_types, Traits{.default_note = "all"},
       "Globs for aggregate_type."},
      {"match_headers", &SubscriptionSpec::match_headers, Traits{.default_note = "none"},
       "Headers that an event must have, with exactly these values."},
      {"format", &SubscriptionSpec::format,
       Traits{.choices = {format::format_names().begin(), format::format_names().end()}},
       "What a message looks like; see [formats](formats.md)."},
      {"format_options", &SubscriptionSpec::format_options, Traits{.default_note = "none"},
       "Options of the format; see [formats](formats.md)."},
      {"topic", &SubscriptionSpec::topic, "Template of the topic."},
      {"key", &SubscriptionSpec::key, "Template of the message key."},
      {"headers", &SubscriptionSpec::headers, Traits{.default_note = "none"},
       "Templates of additional headers."},
      {"rate", &SubscriptionSpec::rate, Traits{.default_note = "none"},
       "At most so many events, such as \"200/s\", \"30/min\" or \"1000/h\"; all relays together."},
      {"start", &SubscriptionSpec::start,
       "Where a new subscription starts: at the oldest retained event, or at the next one."},
      {"on_reject", &SubscriptionSpec::on_reject,
       "An event that the destination rejects is parked and tried again, or stops the subscription."},
      {"on_dead", &SubscriptionSpec::on_dead,
       "Once an event is dead its key continues, or stays blocked until a person decides."},
      {"max_attempts", &SubscriptionSpec::max_attempts, Traits{.range = {1, 1000}},
       "Attempts, the first included, after which an event is dead."},
      {"delays", &SubscriptionSpec::delays,
       Traits{.default_note = "none: retry_base, retry_factor and retry_cap decide"},
       "Pauses before the second attempt, the third and so on, such as [\"5s\", \"1min\"]; their number replaces max_attempts."},
      {"retry_base", &SubscriptionSpec::retry_base, Traits{.range = {1ms, 24h}},
       "The pause before the second attempt."},
      {"retry_factor", &SubscriptionSpec::retry_factor, Traits{.range = {1, 10}},
       "Each further pause is so many times longer."},
      {"retry_cap", &SubscriptionSpec::retry_cap, Traits{.range = {1ms, 30 * 24h}},
       "The longest pause between attempts."},
      {"retry_jitter", &SubscriptionSpec::retry_jitter, Traits{.range = {0, 50}},
       "Percent by which each pause is longer or shorter, at random."},
      {"max_waiting", &SubscriptionSpec::max_waiting, Traits{.range = {1, 10'000'000}},
       "With so many parked events that are not dead no new ones are delivered until there are fewer."},
  };
}

SettingRows<Config> all_rows() {
  auto rows = store_rows();
  for (auto& more :
       {relay_rows(), worker_rows(), history_rows(), http_rows(), audit_rows(), log_rows()})
    rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

}  // namespace

std::string environment_name(const Setting& setting) {
  std::string name = "OUTBOX_";
  for (const char c : setting.name)
    name += c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

const SettingRows<Config>& settings() {
  static const SettingRows<Config> rows = all_rows();
  return rows;
}

const SettingRows<SubscriptionSpec>& subscription_settings() {
  static const SettingRows<SubscriptionSpec> rows = spec_rows();
  return rows;
}

const SettingRows<TaskSpec>& task_settings() {
  static const SettingRows<TaskSpec> rows = task_rows();
  return rows;
}

SettingRows<SubscriptionSpec> task_message_settings() {
  constexpr std::array<std::string_view, 4> kOfMessage{"format", "format_options", "key",
                                                       "headers"};
  SettingRows<SubscriptionSpec> rows;
  for (const auto& row : subscription_settings()) {
    if (std::find(kOfMessage.begin(), kOfMessage.end(), row.setting.name) != kOfMessage.end())
      rows.push_back(row);
  }
  return rows;
}

std::map<std::string, std::string> settled_by_worker(std::string_view handler) {
  const char* const pace = "worker.threads says how many tasks run at once";
  if (handler == "http")
    return {{"batch", "each task has a request of its own"}, {"concurrency", pace}};
  if (handler == "smtp") return {{"max_in_flight", pace}};
  return {};
}

const SettingRows<ConsumerSpec>& consumer_settings() {
  static const SettingRows<ConsumerSpec> rows = consumer_rows();
  return rows;
}

const SettingRows<Schedule>& schedule_settings() {
  static const SettingRows<Schedule> rows = schedule_rows();
  return rows;
}

const SettingRow<Config>* find_setting(std::string_view path) {
  for (const auto& row : settings()) {
    if (row.setting.name == path) return &row;
  }
  return nullptr;
}

}  // namespace outbox::config
