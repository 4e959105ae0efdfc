#include "config/settings.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "event/format.hpp"
#include "sink/registry.hpp"

namespace outbox::config {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::uint64_t in_ms(milliseconds value) {
  return static_cast<std::uint64_t>(value.count());
}

std::vector<SettingRow<Config>> store_rows() {
  return {
      {{.name = "store.url",
        .type = SettingType::url,
        .help = "Where the outbox is: postgresql://... or sqlite:PATH.",
        .default_note = "required",
        .secret = true},
       [](Config& c) -> Slot { return &c.relay.store_url; }},
      {{.name = "store.schema", .help = "PostgreSQL schema of the outbox tables."},
       [](Config& c) -> Slot { return &c.relay.schema; }},
  };
}

std::vector<SettingRow<Config>> relay_rows() {
  return {
      {{.name = "relay.name",
        .help = "Name of this relay in `outbox status`.",
        .default_note = "host name and process id"},
       [](Config& c) -> Slot { return &c.relay.name; }},
      {{.name = "relay.groups",
        .type = SettingType::list,
        .help = "Deliver only the subscriptions of these groups.",
        .default_note = "all"},
       [](Config& c) -> Slot { return &c.relay.groups; }},
      {{.name = "relay.page",
        .type = SettingType::count,
        .help = "Rows of the log per fetch.",
        .least = 1,
        .most = 10000},
       [](Config& c) -> Slot { return &c.relay.page_rows; }},
      {{.name = "relay.window_events",
        .type = SettingType::count,
        .help = "Events fetched but not settled, per subscription; at least one page.",
        .least = 1,
        .most = 1'000'000},
       [](Config& c) -> Slot { return &c.relay.window_events; }},
      {{.name = "relay.window_bytes",
        .type = SettingType::size,
        .help = "Bytes fetched but not settled, per subscription.",
        .least = 1024,
        .most = std::uint64_t{4} << 30U},
       [](Config& c) -> Slot { return &c.relay.window_bytes; }},
      {{.name = "relay.settle_interval",
        .type = SettingType::duration,
        .help =
            "Longest time before a delivered event is settled. After a crash of the relay, unsettled events are delivered again.",
        .least = 1,
        .most = in_ms(seconds(10))},
       [](Config& c) -> Slot { return &c.relay.settle_interval; }},
      {{.name = "relay.settle_events",
        .type = SettingType::count,
        .help = "Settle earlier after this many events.",
        .least = 1,
        .most = 100'000},
       [](Config& c) -> Slot { return &c.relay.settle_events; }},
      {{.name = "relay.lease",
        .type = SettingType::duration,
        .help =
            "How long a relay keeps the lanes without a heartbeat. Then another relay takes over from one that hangs.",
        .least = in_ms(seconds(1)),
        .most = in_ms(minutes(10))},
       [](Config& c) -> Slot { return &c.relay.lease; }},
      {{.name = "relay.idle_poll",
        .type = SettingType::duration,
        .help =
            "Longest pause between polls while idle. A long one lets a serverless database sleep.",
        .least = 1,
        .most = in_ms(hours(24))},
       [](Config& c) -> Slot { return &c.relay.idle_poll; }},
      {{.name = "relay.wake_up",
        .type = SettingType::boolean,
        .help =
            "Let commits wake the relay. PostgreSQL: not through a pooler in transaction mode."},
       [](Config& c) -> Slot { return &c.relay.wake_up; }},
      {{.name = "relay.retention",
        .type = SettingType::duration,
        .help =
            "How long events stay in the log after they were written, if all subscriptions have passed them. 0: they are removed as soon as all subscriptions have passed them.",
        .least = 0,
        .most = in_ms(hours(24 * 3650))},
       [](Config& c) -> Slot { return &c.relay.retention; }},
      {{.name = "relay.archive",
        .type = SettingType::path,
        .help = "A folder for files of the events that are removed, one JSON object per line.",
        .default_note = "none"},
       [](Config& c) -> Slot { return &c.relay.archive; }},
      {{.name = "relay.quota",
        .type = SettingType::size,
        .help =
            "A subscription that holds back more of what could be removed is a problem in `outbox status`. Nothing is removed because of it."},
       [](Config& c) -> Slot { return &c.relay.quota; }},
      {{.name = "relay.grace",
        .type = SettingType::duration,
        .help =
            "How long to wait for events in flight after SIGTERM or SIGINT. The rest is delivered again.",
        .least = 0,
        .most = in_ms(hours(1))},
       [](Config& c) -> Slot { return &c.grace; }},
  };
}

std::vector<SettingRow<Config>> worker_rows() {
  return {
      {{.name = "worker.threads",
        .type = SettingType::count,
        .help = "How many tasks run at once, of each queue.",
        .least = 1,
        .most = 1024},
       [](Config& c) -> Slot { return &c.worker.threads; }},
      {{.name = "worker.delays",
        .type = SettingType::list,
        .help = "Pauses after failed runs: n pauses are n retries, then the task is dead."},
       [](Config& c) -> Slot { return &c.worker.delays; }},
      {{.name = "worker.jitter",
        .type = SettingType::count,
        .help = "Percent by which each pause is longer or shorter, at random.",
        .least = 0,
        .most = 50},
       [](Config& c) -> Slot { return &c.worker.jitter; }},
      {{.name = "worker.row_after",
        .type = SettingType::duration,
        .help =
            "A run that lasts longer gets a row, which shows it, and with which it goes on when the lanes of its worker change.",
        .least = 10,
        .most = in_ms(minutes(10))},
       [](Config& c) -> Slot { return &c.worker.row_after; }},
      {{.name = "worker.heartbeat",
        .type = SettingType::duration,
        .help =
            "Of runs that have a row. Those of a worker without three of them in a row count as failed, and run again elsewhere after the next delay.",
        .least = 100,
        .most = in_ms(minutes(10))},
       [](Config& c) -> Slot { return &c.worker.heartbeat; }},
      {{.name = "worker.result_bytes",
        .type = SettingType::size,
        .help = "A larger result of a task is not kept.",
        .least = 0,
        .most = std::uint64_t{1} << 20U},
       [](Config& c) -> Slot { return &c.worker.result_bytes; }},
      {{.name = "worker.unknown_type_pause",
        .type = SettingType::duration,
        .help = "How long a task waits whose type has no handler, before that is looked at again.",
        .least = 10,
        .most = in_ms(hours(24))},
       [](Config& c) -> Slot { return &c.worker.unknown_type_pause; }},
      {{.name = "worker.grace",
        .type = SettingType::duration,
        .help =
            "How long to wait for tasks that run after SIGTERM or SIGINT. The others are told to stop and run again, with no attempt counted.",
        .least = 0,
        .most = in_ms(hours(24))},
       [](Config& c) -> Slot { return &c.worker_grace; }},
  };
}

std::vector<SettingRow<TaskSpec>> task_rows() {
  return {
      {{.name = "queue",
        .help = "Where tasks of this type are: letters, digits, '-', '_' and '.'."},
       [](TaskSpec& t) -> Slot { return &t.queue; }},
      {{.name = "handler",
        .type = SettingType::choice,
        .help =
            "What does them. exec: a program, with the payload as its input. http: a request. smtp: a mail.",
        .choices = {"exec", "http", "smtp"}},
       [](TaskSpec& t) -> Slot { return &t.handler; }},
      {{.name = "command",
        .type = SettingType::list,
        .help =
            "Of exec: the program and its arguments. No shell; a program without a path is looked for in PATH.",
        .default_note = "required"},
       [](TaskSpec& t) -> Slot { return &t.command; }},
      {{.name = "deadline",
        .type = SettingType::duration,
        .help =
            "A program that runs longer gets SIGTERM, and 5s later SIGKILL; a request or a mail is given up. How it then ends counts.",
        .least = 1,
        .most = in_ms(hours(24 * 30))},
       [](TaskSpec& t) -> Slot { return &t.deadline; }},
      {{.name = "delays",
        .type = SettingType::list,
        .help =
            "The pauses after failed runs of this type: n pauses are n retries, then it is dead.",
        .default_note = "those of worker.delays"},
       [](TaskSpec& t) -> Slot { return &t.delays; }},
      {{.name = "max_running",
        .type = SettingType::count,
        .help =
            "So many runs of this type at once in each worker; what cannot begin holds no other type up. 0: no limit.",
        .most = 1000},
       [](TaskSpec& t) -> Slot { return &t.max_running; }},
      {{.name = "rate",
        .help =
            "So many runs of this type begin, like \"200/s\", \"30/min\" or \"1000/h\": of all workers together.",
        .default_note = "no limit"},
       [](TaskSpec& t) -> Slot { return &t.rate; }},
      {{.name = "slow",
        .type = SettingType::boolean,
        .help =
            "Its runs have a row from the beginning, not after worker.row_after: they are seen at once, and what their worker was doing when it died is known."},
       [](TaskSpec& t) -> Slot { return &t.slow; }},
  };
}

std::vector<SettingRow<Schedule>> schedule_rows() {
  return {
      {{.name = "queue", .help = "Of its tasks."}, [](Schedule& s) -> Slot { return &s.queue; }},
      {{.name = "type", .help = "Of its tasks.", .default_note = "required"},
       [](Schedule& s) -> Slot { return &s.type; }},
      {{.name = "payload", .help = "Of its tasks, the same each time."},
       [](Schedule& s) -> Slot { return &s.payload; }},
      {{.name = "content_type", .help = "The media type of the payload."},
       [](Schedule& s) -> Slot { return &s.content_type; }},
      {{.name = "key",
        .help = "With a key, a task waits until the one of the tick before has ended.",
        .default_note = "none"},
       [](Schedule& s) -> Slot { return &s.key; }},
      {{.name = "headers",
        .type = SettingType::table,
        .help = "Further headers of its tasks.",
        .default_note = "none"},
       [](Schedule& s) -> Slot { return &s.headers; }},
      {{.name = "cron",
        .help =
            "Minute, hour, day of month, month, day of week: \"30 8 * * mon-fri\"; or @hourly, @daily, @weekly, @monthly, @yearly. Either this or every.",
        .default_note = "none"},
       [](Schedule& s) -> Slot { return &s.cron; }},
      {{.name = "every",
        .help =
            "The time between ticks, such as \"15min\", from 1s to 366d. They are at its multiples since 1970, UTC.",
        .default_note = "none"},
       [](Schedule& s) -> Slot { return &s.every; }},
      {{.name = "time_zone",
        .help = "What cron means: a name of the tz database such as \"Europe/Berlin\"."},
       [](Schedule& s) -> Slot { return &s.time_zone; }},
      {{.name = "missed",
        .type = SettingType::choice,
        .help =
            "Of ticks at which no worker ran: one task however many there were; none that is more than 1min late; each of the newest 1000.",
        .choices = {"one", "skip", "all"}},
       [](Schedule& s) -> Slot { return &s.missed; }},
  };
}

std::vector<SettingRow<Config>> log_rows() {
  return {
      {{.name = "log.level",
        .type = SettingType::choice,
        .help = "The lowest level that is logged (to stderr).",
        .choices = {"debug", "info", "warn", "error", "off"}},
       [](Config& c) -> Slot { return &c.log_level; }},
      {{.name = "log.format",
        .type = SettingType::choice,
        .help = "Format of log lines.",
        .choices = {"text", "json"}},
       [](Config& c) -> Slot { return &c.log_format; }},
  };
}

/// Without "custom", the sink of an application with its own relay.
std::vector<std::string_view> sink_names() {
  std::vector<std::string_view> names;
  for (const auto& kind : sink::kinds()) names.emplace_back(kind.name);
  return names;
}

std::vector<SettingRow<SubscriptionSpec>> spec_rows() {
  using Spec = SubscriptionSpec;
  return {
      {{.name = "sink",
        .type = SettingType::choice,
        .help = "The destination. Its settings are in the table [subscription.NAME.SINK].",
        .choices = sink_names(),
        .required = true},
       [](Spec& s) -> Slot { return &s.sink; }},
      {{.name = "group",
        .help =
            "The relays that serve this group share its subscriptions' work. Not for sink file, which has a group of its own.",
        .default_note = "default"},
       [](Spec& s) -> Slot { return &s.group; }},
      {{.name = "event_types",
        .type = SettingType::list,
        .help =
            "Globs for event_type ('*' matches any run of characters, '?' one); one of them must match.",
        .default_note = "all"},
       [](Spec& s) -> Slot { return &s.event_types; }},
      {{.name = "aggregate_types",
        .type = SettingType::list,
        .help = "Globs for aggregate_type.",
        .default_note = "all"},
       [](Spec& s) -> Slot { return &s.aggregate_types; }},
      {{.name = "match_headers",
        .type = SettingType::table,
        .help = "Headers that an event must have, with exactly these values.",
        .default_note = "none"},
       [](Spec& s) -> Slot { return &s.match_headers; }},
      {{.name = "format",
        .type = SettingType::choice,
        .help = "What a message looks like; see [formats](formats.md).",
        .choices = {event::format_names().begin(), event::format_names().end()}},
       [](Spec& s) -> Slot { return &s.format; }},
      {{.name = "format_options",
        .type = SettingType::table,
        .help = "Options of the format; see [formats](formats.md).",
        .default_note = "none"},
       [](Spec& s) -> Slot { return &s.format_options; }},
      {{.name = "topic", .help = "Template of the topic."},
       [](Spec& s) -> Slot { return &s.topic; }},
      {{.name = "key", .help = "Template of the message key."},
       [](Spec& s) -> Slot { return &s.key; }},
      {{.name = "headers",
        .type = SettingType::table,
        .help = "Templates of additional headers.",
        .default_note = "none"},
       [](Spec& s) -> Slot { return &s.headers; }},
      {{.name = "rate",
        .help =
            "At most so many events, such as \"200/s\", \"30/min\" or \"1000/h\"; all relays together.",
        .default_note = "none"},
       [](Spec& s) -> Slot { return &s.rate; }},
      {{.name = "start",
        .type = SettingType::choice,
        .help =
            "Where a new subscription starts: at the oldest retained event, or at the next one.",
        .choices = {"beginning", "now"}},
       [](Spec& s) -> Slot { return &s.start; }},
      {{.name = "on_reject",
        .type = SettingType::choice,
        .help =
            "An event that the destination rejects is parked and tried again, or stops the subscription.",
        .choices = {"park", "stop"}},
       [](Spec& s) -> Slot { return &s.on_reject; }},
      {{.name = "on_dead",
        .type = SettingType::choice,
        .help = "Once an event is dead its key continues, or stays blocked until a person decides.",
        .choices = {"continue", "block"}},
       [](Spec& s) -> Slot { return &s.on_dead; }},
      {{.name = "max_attempts",
        .type = SettingType::count,
        .help = "Attempts, the first included, after which an event is dead.",
        .least = 1,
        .most = 1000},
       [](Spec& s) -> Slot { return &s.max_attempts; }},
      {{.name = "delays",
        .type = SettingType::list,
        .help =
            "Pauses before the second attempt, the third and so on, such as [\"5s\", \"1min\"]; their number replaces max_attempts.",
        .default_note = "none: retry_base, retry_factor and retry_cap decide"},
       [](Spec& s) -> Slot { return &s.delays; }},
      {{.name = "retry_base",
        .type = SettingType::duration,
        .help = "The pause before the second attempt.",
        .least = 1,
        .most = in_ms(hours(24))},
       [](Spec& s) -> Slot { return &s.retry_base; }},
      {{.name = "retry_factor",
        .type = SettingType::count,
        .help = "Each further pause is so many times longer.",
        .least = 1,
        .most = 10},
       [](Spec& s) -> Slot { return &s.retry_factor; }},
      {{.name = "retry_cap",
        .type = SettingType::duration,
        .help = "The longest pause between attempts.",
        .least = 1,
        .most = in_ms(hours(24 * 30))},
       [](Spec& s) -> Slot { return &s.retry_cap; }},
      {{.name = "retry_jitter",
        .type = SettingType::count,
        .help = "Percent by which each pause is longer or shorter, at random.",
        .least = 0,
        .most = 50},
       [](Spec& s) -> Slot { return &s.retry_jitter; }},
      {{.name = "max_waiting",
        .type = SettingType::count,
        .help =
            "With so many parked events that are not dead no new ones are delivered until there are fewer.",
        .least = 1,
        .most = 10'000'000},
       [](Spec& s) -> Slot { return &s.max_waiting; }},
  };
}

std::vector<SettingRow<Config>> all_rows() {
  auto rows = store_rows();
  for (auto& more : {relay_rows(), worker_rows(), log_rows()})
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

const std::vector<SettingRow<Config>>& settings() {
  static const std::vector<SettingRow<Config>> rows = all_rows();
  return rows;
}

const std::vector<SettingRow<SubscriptionSpec>>& subscription_settings() {
  static const std::vector<SettingRow<SubscriptionSpec>> rows = spec_rows();
  return rows;
}

const std::vector<SettingRow<TaskSpec>>& task_settings() {
  static const std::vector<SettingRow<TaskSpec>> rows = task_rows();
  return rows;
}

std::vector<SettingRow<SubscriptionSpec>> task_message_settings() {
  constexpr std::array<std::string_view, 4> kOfMessage{"format", "format_options", "key",
                                                       "headers"};
  std::vector<SettingRow<SubscriptionSpec>> rows;
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

const std::vector<SettingRow<Schedule>>& schedule_settings() {
  static const std::vector<SettingRow<Schedule>> rows = schedule_rows();
  return rows;
}

const SettingRow<Config>* find_setting(std::string_view path) {
  for (const auto& row : settings()) {
    if (row.setting.name == path) return &row;
  }
  return nullptr;
}

}  // namespace outbox::config
