#include "config/settings_page.hpp"

#include "config/assign.hpp"
#include "config/settings.hpp"
#include "sink/registry.hpp"

namespace outbox::config {
namespace {

constexpr std::string_view kHead =
    R"(<!-- Made by `outbox config reference` from the table in src/config/settings.cpp. Do not edit. -->

# Settings

One TOML file holds the configuration: the file given with `-c`, else the one that `OUTBOX_CONFIG` names, else
`outbox.toml` in the working directory if there is one. Environment variables override the file, flags override both.
Every setting outside `[subscription]` can be given as a flag: `--set relay.page=500`. An empty variable counts as not set.

- Durations are a whole number and a unit: `50ms`, `15s`, `5min`, `1h`, `7d`. A number without a unit is refused.
- Sizes are a whole number and a unit: `512B`, `64KiB`, `16MiB`, `1GiB`. A number without a unit is bytes.
- In string values `${env:NAME}` stands for an environment variable and `${file:PATH}` for what is in a file, which only its
  owner may be able to read. `$${` is a plain `${`.
- Relative paths in the file (`sqlite:shop.db`, `file.path`, `${file:PATH}`) count from its folder, those in flags and environment
  variables from the working directory.
- An unknown setting is an error that names the nearest known one. `outbox config check` finds every error at once,
  `outbox config show` prints what is in effect and where each value came from, without passwords.
)";

constexpr std::string_view kSubscriptionHead = R"(
## [subscription.NAME]

One section per subscription. The name has letters, digits, `-`, `_` and `.`, at most 63 bytes. `outbox relay` applies these
sections when it gets the lanes, `outbox subscription apply` without a relay.

| setting | type | default | values | |
|---|---|---|---|---|
)";

/// In a table cell a bar must be escaped.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

std::string code(std::string_view text) {
  std::string out;
  if (!text.empty()) out.append("`").append(cell(text)).append("`");
  return out;
}

std::string default_of(const Setting& setting, Slot slot) {
  if (setting.required) return "needed";
  if (!setting.default_note.empty()) return setting.default_note;
  return code(show(setting, slot));
}

std::string section_title(std::string_view section) {
  return "\n## [" + std::string(section) +
         "]\n\n| setting | type | default | values | environment | |\n|---|---|---|---|---|---|\n";
}

std::string setting_rows() {
  Config defaults;
  std::string page;
  std::string_view section;
  for (const auto& [setting, slot] : settings()) {
    if (setting.section() != section) page += section_title(section = setting.section());
    page.append("| ")
        .append(code(setting.path))
        .append(" | ")
        .append(to_string(setting.kind))
        .append(" | ");
    page.append(default_of(setting, slot(defaults)))
        .append(" | ")
        .append(cell(setting.range()))
        .append(" | ");
    page.append(code(setting.environment())).append(" | ").append(cell(setting.help));
    page.append(setting.secret ? " A password in it is never shown. |\n" : " |\n");
  }
  return page;
}

std::string subscription_rows() {
  SubscriptionSpec defaults;
  std::string page(kSubscriptionHead);
  for (const auto& [setting, slot] : subscription_settings()) {
    page.append("| ")
        .append(code(setting.path))
        .append(" | ")
        .append(to_string(setting.kind))
        .append(" | ");
    page.append(default_of(setting, slot(defaults)))
        .append(" | ")
        .append(cell(setting.range()))
        .append(" | ");
    page.append(cell(setting.help)).append(" |\n");
  }
  return page;
}

std::string sink_part(const sink::SinkInfo& sink) {
  std::string part = "\n## [subscription.NAME." + sink.name + "]\n\nThe sink `" + sink.name +
                     "`: " + sink.help + ".\n";
  if (sink.free_form)
    part += "\nFurther keys are passed on as properties of the client library; see docs/sinks.\n";
  if (sink.settings.empty()) return part + "\nIt has no settings.\n";
  part += "\n| setting | type | default | |\n|---|---|---|---|\n";
  for (const auto& setting : sink.settings) {
    part.append("| ")
        .append(code(setting.name))
        .append(" | ")
        .append(cell(setting.type))
        .append(" | ");
    part.append(setting.required ? "needed" : code(setting.default_value)).append(" | ");
    part.append(cell(setting.help)).append(" |\n");
  }
  return part;
}

}  // namespace

std::string settings_page() {
  std::string page(kHead);
  page += setting_rows();
  page += subscription_rows();
  for (const auto& sink : sink::all_sinks()) page += sink_part(sink);
  return page;
}

std::string settings_help(std::string_view section) {
  Config defaults;
  std::string text;
  for (const auto& [setting, slot] : settings()) {
    if (setting.section() != section) continue;
    const std::string shown =
        setting.default_note.empty() ? show(setting, slot(defaults)) : setting.default_note;
    text.append("  ").append(setting.path).append(" (").append(shown);
    if (const std::string range = setting.range(); !range.empty()) text.append("; ").append(range);
    text.append(")\n      ").append(setting.help).append("\n");
  }
  return text;
}

}  // namespace outbox::config
