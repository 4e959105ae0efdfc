#include "config/settings.hpp"

#include <algorithm>
#include <cctype>

#include "base/units.hpp"
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

std::vector<Row<Config>> store_rows() {
  return {
      {{.path = "store.url",
        .kind = Kind::url,
        .help = "Where the outbox is: postgresql://... or sqlite:PATH.",
        .default_note = "none; needed",
        .secret = true},
       [](Config& c) -> Slot { return &c.relay.store_url; }},
      {{.path = "store.schema",
        .kind = Kind::text,
        .help = "PostgreSQL schema of the outbox tables."},
       [](Config& c) -> Slot { return &c.relay.schema; }},
  };
}

std::vector<Row<Config>> relay_rows() {
  return {
      {{.path = "relay.name",
        .kind = Kind::text,
        .help = "How this relay calls itself in `outbox status`.",
        .default_note = "host name and process id"},
       [](Config& c) -> Slot { return &c.relay.name; }},
      {{.path = "relay.page",
        .kind = Kind::count,
        .help = "Rows of the log per fetch.",
        .least = 1,
        .most = 10000},
       [](Config& c) -> Slot { return &c.relay.page_rows; }},
      {{.path = "relay.window_events",
        .kind = Kind::count,
        .help = "Events fetched but not settled, per subscription; at least one page.",
        .least = 1,
        .most = 1'000'000},
       [](Config& c) -> Slot { return &c.relay.window_events; }},
      {{.path = "relay.window_bytes",
        .kind = Kind::size,
        .help = "Bytes fetched but not settled, per subscription.",
        .least = 1024,
        .most = std::uint64_t{4} << 30U},
       [](Config& c) -> Slot { return &c.relay.window_bytes; }},
      {{.path = "relay.settle_interval",
        .kind = Kind::duration,
        .help =
            "Longest time a delivered event stays unsettled. What is unsettled when a relay dies is delivered again.",
        .least = 1,
        .most = in_ms(seconds(10))},
       [](Config& c) -> Slot { return &c.relay.settle_interval; }},
      {{.path = "relay.settle_events",
        .kind = Kind::count,
        .help = "Settle earlier once so many events are done.",
        .least = 1,
        .most = 100'000},
       [](Config& c) -> Slot { return &c.relay.settle_events; }},
      {{.path = "relay.lease",
        .kind = Kind::duration,
        .help =
            "How long the lanes stay this relay's without a heartbeat. A relay that hangs is replaced after it.",
        .least = in_ms(seconds(1)),
        .most = in_ms(minutes(10))},
       [](Config& c) -> Slot { return &c.relay.lease; }},
      {{.path = "relay.idle_poll",
        .kind = Kind::duration,
        .help =
            "Longest pause between polls when nothing happens. Long ones let a serverless database sleep.",
        .least = 1,
        .most = in_ms(hours(24))},
       [](Config& c) -> Slot { return &c.relay.idle_poll; }},
      {{.path = "relay.wake_up",
        .kind = Kind::boolean,
        .help =
            "Let commits wake the relay. PostgreSQL: needs a connection that is not pooled by transaction."},
       [](Config& c) -> Slot { return &c.relay.wake_up; }},
      {{.path = "relay.grace",
        .kind = Kind::duration,
        .help =
            "After SIGTERM or SIGINT: how long to wait for what is in flight. The rest is delivered again.",
        .least = 0,
        .most = in_ms(hours(1))},
       [](Config& c) -> Slot { return &c.grace; }},
  };
}

std::vector<Row<Config>> log_rows() {
  return {
      {{.path = "log.level",
        .kind = Kind::choice,
        .help = "The least important line that is written (to stderr).",
        .choices = {"debug", "info", "warn", "error", "off"}},
       [](Config& c) -> Slot { return &c.log_level; }},
      {{.path = "log.format",
        .kind = Kind::choice,
        .help = "How lines look.",
        .choices = {"text", "json"}},
       [](Config& c) -> Slot { return &c.log_format; }},
  };
}

/// Without "custom", which is for sinks that an application brings: this program has none.
std::vector<std::string_view> sink_names() {
  std::vector<std::string_view> names;
  for (const auto& sink : sink::all_sinks()) names.emplace_back(sink.name);
  return names;
}

std::vector<Row<SubscriptionSpec>> spec_rows() {
  using Spec = SubscriptionSpec;
  return {
      {{.path = "sink",
        .kind = Kind::choice,
        .help = "Where to. Its settings stand in a table of that name, [subscription.NAME.SINK].",
        .choices = sink_names(),
        .required = true},
       [](Spec& s) -> Slot { return &s.sink; }},
      {{.path = "event_types",
        .kind = Kind::list,
        .help =
            "Globs over event_type ('*' any run, '?' one character); an event matches when any does.",
        .default_note = "all"},
       [](Spec& s) -> Slot { return &s.event_types; }},
      {{.path = "aggregate_types",
        .kind = Kind::list,
        .help = "Globs over aggregate_type.",
        .default_note = "all"},
       [](Spec& s) -> Slot { return &s.aggregate_types; }},
      {{.path = "match_headers",
        .kind = Kind::table,
        .help = "Headers that an event must have with exactly this value.",
        .default_note = "not looked at"},
       [](Spec& s) -> Slot { return &s.match_headers; }},
      {{.path = "format",
        .kind = Kind::choice,
        .help = "raw: the payload is the body, attributes are headers. json: one envelope.",
        .choices = {"raw", "json"}},
       [](Spec& s) -> Slot { return &s.format; }},
      {{.path = "topic", .kind = Kind::text, .help = "Template of the topic."},
       [](Spec& s) -> Slot { return &s.topic; }},
      {{.path = "key", .kind = Kind::text, .help = "Template of the message key."},
       [](Spec& s) -> Slot { return &s.key; }},
      {{.path = "headers",
        .kind = Kind::table,
        .help = "Templates of further headers.",
        .default_note = "none"},
       [](Spec& s) -> Slot { return &s.headers; }},
      {{.path = "start",
        .kind = Kind::choice,
        .help =
            "Where a new subscription begins: with the oldest event retained, or with the next one.",
        .choices = {"beginning", "now"}},
       [](Spec& s) -> Slot { return &s.start; }},
  };
}

std::vector<Row<Config>> all_rows() {
  auto rows = store_rows();
  for (auto& more : {relay_rows(), log_rows()}) rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

std::string in_unit(const Setting& setting, std::uint64_t value) {
  switch (setting.kind) {
    case Kind::size: return format_size(value);
    case Kind::duration: return format_duration(milliseconds(static_cast<std::int64_t>(value)));
    default: return std::to_string(value);
  }
}

}  // namespace

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::text: return "string";
    case Kind::url: return "URL";
    case Kind::choice: return "choice";
    case Kind::boolean: return "boolean";
    case Kind::count: return "integer";
    case Kind::size: return "size";
    case Kind::duration: return "duration";
    case Kind::list: return "array of strings";
    case Kind::table: return "table of strings";
  }
  return "";
}

std::string Setting::environment() const {
  std::string name = "OUTBOX_";
  for (const char c : path)
    name += c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

std::string Setting::range() const {
  if (kind == Kind::boolean) return "true | false";
  if (kind == Kind::choice) {
    std::string text;
    for (const std::string_view choice : choices)
      text.append(text.empty() ? "" : " | ").append(choice);
    return text;
  }
  if (most == 0) return {};
  return in_unit(*this, least) + " to " + in_unit(*this, most);
}

const std::vector<Row<Config>>& settings() {
  static const std::vector<Row<Config>> rows = all_rows();
  return rows;
}

const std::vector<Row<SubscriptionSpec>>& subscription_settings() {
  static const std::vector<Row<SubscriptionSpec>> rows = spec_rows();
  return rows;
}

const Row<Config>* find_setting(std::string_view path) {
  for (const auto& row : settings()) {
    if (row.setting.path == path) return &row;
  }
  return nullptr;
}

}  // namespace outbox::config
