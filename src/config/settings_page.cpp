#include "config/settings_page.hpp"

#include <fmt/format.h>

#include <utility>

#include "config/settings.hpp"
#include "sink/registry.hpp"
#include "source/registry.hpp"

namespace outbox::config {
namespace {

constexpr std::string_view kHead =
    R"(<!-- Made by `outbox config reference` from the tables of settings. Do not edit. -->

# Settings

One TOML file holds the configuration: the file given with `-c`, else the one that `OUTBOX_CONFIG` names, else
`outbox.toml` in the working directory if there is one. Environment variables override the file, flags override both.
Every setting outside `[subscription]` can be given as a flag: `--set relay.page=500`. An empty variable counts as not set.

- Durations are a whole number and a unit: `50ms`, `15s`, `5min`, `1h`, `7d`. A number without a unit is refused.
- Sizes are a whole number and a unit: `512B`, `64KiB`, `16MiB`, `1GiB`. A number without a unit is bytes.
- In string values `${env:NAME}` is the value of an environment variable and `${file:PATH}` the content of a file, which only
  its owner may be able to read. `$${` is a literal `${`.
- Relative paths in the file (`sqlite:shop.db`, `file.path`, `${file:PATH}`) are relative to its folder, those in flags and
  environment variables to the working directory.
- An unknown setting is an error that names the nearest known one. `outbox config check` reports all errors at once,
  `outbox config show` prints the effective values and their origins, without passwords.
)";

constexpr std::string_view kSubscriptionHead = R"(
## [subscription.NAME]

One section per subscription. The name has letters, digits, `-`, `_` and `.`, at most 63 bytes. `outbox relay` applies these
sections when it gets the lanes, `outbox subscription apply` without a relay.
)";

constexpr std::string_view kTaskHead = R"(
## [task."TYPE"]

One section per type of task that `outbox work` does; see [tasks](../guide/tasks.md).
)";

constexpr std::string_view kScheduleHead = R"(
## [schedule.NAME]

One section per schedule: tasks that recur; see [tasks](../guide/tasks.md#schedules). The name has letters, digits, `-`, `_` and `.`, at most 63 bytes. `outbox work`
writes these sections to the store when it starts.
)";

constexpr std::string_view kConsumerHead = R"(
## [consumer.NAME]

One section per consumer: what `outbox consume` reads, and into which queue; see [consumers](../guide/consumers.md). The name has letters, digits, `-`, `_` and `.`, at most 63 bytes. The
table `[consumer.NAME.SOURCE]` has the settings of the connection: those of the sink of the same name, without those that say how to send.
)";

constexpr std::string_view kHttpHandler = "http";

/// The text with escaped bars, which would end the table cell.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) out.append(c == '|' ? "\\" : "").append(1, c);
  return out;
}

std::string code(std::string_view text) { return "`" + cell(text) + "`"; }

std::string describe_default(const Setting& setting, const std::string& value) {
  if (setting.required) return "required";
  return setting.default_note.empty() ? code(value) : setting.default_note;
}

std::string table_head(bool environment) {
  return environment
             ? "\n| setting | type | default | values | environment | |\n|---|---|---|---|---|---|\n"
             : "\n| setting | type | default | values | |\n|---|---|---|---|---|\n";
}

std::string row(const Setting& setting, const std::string& value, bool environment) {
  return fmt::format("| {} | {} | {} | {} |{} {}{} |\n", code(setting.name),
                     to_string(setting.type), describe_default(setting, value),
                     cell(setting.range()),
                     environment ? " " + code(environment_name(setting)) + " |" : "",
                     cell(setting.help), setting.secret ? " A password in it is never shown." : "");
}

std::string program_part() {
  Config defaults;
  std::string part;
  std::string_view section;
  for (const auto& [setting, slot] : settings()) {
    if (setting.section() != section) {
      section = setting.section();
      part += fmt::format("\n## [{}]\n{}", section, table_head(true));
    }
    part += row(setting, toml_text(setting, slot(defaults)), true);
  }
  return part;
}

std::string subscription_part() {
  SubscriptionSpec defaults;
  std::string part(kSubscriptionHead);
  part += table_head(false);
  for (const auto& [setting, slot] : subscription_settings())
    part += row(setting, toml_text(setting, slot(defaults)), false);
  return part;
}

std::string task_part() {
  TaskSpec defaults;
  std::string part(kTaskHead);
  part += table_head(false);
  for (const auto& [setting, slot] : task_settings())
    part += row(setting, toml_text(setting, slot(defaults)), false);
  std::string shared;
  for (const auto& one : task_message_settings())
    shared += (shared.empty() ? "" : ", ") + code(one.setting.name);
  for (const std::string_view handler : {kHttpHandler, std::string_view("smtp")}) {
    std::string settled;
    for (const auto& [name, why] : settled_by_worker(handler))
      settled += (settled.empty() ? "" : " and ") + code(name);
    part += fmt::format(
        "\nWith `handler = \"{0}\"` the section has {1} of a subscription, too, and its table `[task.\"TYPE\".{0}]` has the settings of\n"
        "the sink `{0}`, without {2}.{3}\n",
        handler, shared, settled,
        handler == kHttpHandler ? " There `idempotency_key` is `true` by default." : "");
  }
  return part;
}

std::string schedule_part() {
  Schedule defaults;
  std::string part(kScheduleHead);
  part += table_head(false);
  for (const auto& [setting, slot] : schedule_settings())
    part += row(setting, toml_text(setting, slot(defaults)), false);
  return part;
}

std::string consumer_part() {
  ConsumerSpec defaults;
  std::string part(kConsumerHead);
  part += table_head(false);
  for (const auto& [setting, slot] : consumer_settings())
    part += row(setting, toml_text(setting, slot(defaults)), false);
  for (const auto& source : source::kinds()) {
    std::string without;
    for (const std::string& setting : source.of_sending)
      without += (without.empty() ? "" : ", ") + code(setting);
    part += fmt::format("\nThe source `{0}` {1}. Its table is without {2}.\n", source.name,
                        source.help, without);
  }
  return part;
}

std::string sink_part(const sink::SinkKind& sink) {
  std::string part =
      fmt::format("\n## [subscription.NAME.{0}]\n\nThe sink `{0}` {1}.\n", sink.name, sink.help);
  if (sink.passed_on) part += "\n" + sink.passed_on->help + "\n";
  if (sink.settings.empty()) return part + "\nIt has no settings.\n";
  part += table_head(false);
  for (Setting setting : sink.settings) {
    const std::string value = std::exchange(setting.default_note, {});
    part += row(setting, value, false);
  }
  return part;
}

}  // namespace

std::string settings_page() {
  std::string page(kHead);
  page += program_part() + subscription_part();
  for (const auto& sink : sink::kinds()) page += sink_part(sink);
  page += task_part();
  page += schedule_part();
  page += consumer_part();
  return page;
}

std::string settings_help(std::string_view section) {
  Config defaults;
  std::string text;
  for (const auto& [setting, slot] : settings()) {
    if (setting.section() != section) continue;
    const std::string range = setting.range();
    text += fmt::format(
        "  {} ({}{}{})\n      {}\n", setting.name,
        setting.default_note.empty() ? toml_text(setting, slot(defaults)) : setting.default_note,
        range.empty() ? "" : "; ", range, setting.help);
  }
  return text;
}

}  // namespace outbox::config
