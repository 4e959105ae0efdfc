// A kind of sink, as the registry, the configuration and docs/reference see it. A sink declares its
// settings as a table of SettingRows of its own structure:
//
//   struct PrinterSettings { std::string path; bool loud{false}; };
//   SinkKind printer_kind() {
//     return make_kind<PrinterSettings>({
//         .name = "printer",
//         .help = "prints events",
//         .rows = {{"loud", &PrinterSettings::loud, "..."}},
//         .make = [](PrinterSettings s) -> Result<std::unique_ptr<Sink>> { ... }});
//   }
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <outbox/sink.hpp>
#include <outbox/subscription.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/field_error.hpp"
#include "base/setting.hpp"
#include "sink/inspection.hpp"
#include "sink/network_sink.hpp"
#include "sink/read_back.hpp"
#include "sink/tls_settings.hpp"

namespace outbox::sink {

using Texts = std::map<std::string, std::string>;

/// Settings that a sink does not declare but passes to its client library.
struct PassedOn {
  std::string help;  ///< Text for docs/reference.
  bool (*names_file)(std::string_view name, std::string_view value);
  bool (*is_secret)(std::string_view name);
};

struct SinkKind {
  std::string name;
  std::string help;
  std::vector<Setting> settings;  ///< Their default_note is the default.
  std::optional<PassedOn> passed_on;

  /// Adds everything that is wrong with the subscription's settings for this sink, each with its
  /// field ("http.url", "topic"). Opens only files that the settings refer to. A reference that
  /// this machine cannot resolve is no error.
  std::function<void(const SubscriptionSpec&, FieldErrors&)> check;
  /// Adds what would fail on this machine now, such as a missing directory or an unresolved
  /// reference. Opens nothing else.
  std::function<void(const SubscriptionSpec&, FieldErrors&)> check_here;
  /// Connects to the destination and looks at it, without sending an event.
  std::function<Result<Inspection>(const SubscriptionSpec&)> inspect;
  /// Makes a sink that is not open.
  std::function<Result<std::unique_ptr<Sink>>(const SubscriptionSpec&)> make;
  /// Reads all that the destination holds now; not set if it cannot be read back.
  std::function<Result<ReadParts>(const SubscriptionSpec&, const TakeId&)> read_back;

  [[nodiscard]] const Setting* find(std::string_view setting) const;
};

/// How a sink declares itself.
template <class Settings>
struct Declaration {
  std::string name;
  std::string help;
  SettingRows<Settings> rows{};
  std::optional<PassedOn> passed_on{};
  /// Where settings that are passed on are stored.
  Texts& (*others)(Settings&){nullptr};
  /// Checks that the table cannot express.
  void (*check)(const Settings&, FieldErrors&){nullptr};
  /// Checks for what would otherwise fail with the first event.
  void (*check_use)(const Settings&, const SubscriptionSpec&, FieldErrors&){nullptr};
  /// Checks files other than those of TlsSettings, which are checked if there is a member `tls`.
  void (*check_here)(const Settings&, FieldErrors&){nullptr};
  Result<std::unique_ptr<Sink>> (*make)(Settings){nullptr};
  Result<Inspection> (*inspect)(Settings, const SubscriptionSpec&){nullptr};
  /// Replaces `make` and `inspect` for a sink that is inspected once it is open.
  Result<std::unique_ptr<NetworkSink>> (*make_network)(Settings, const SubscriptionSpec&){nullptr};
  Result<ReadParts> (*read_back)(const Settings&, const SubscriptionSpec&, const TakeId&){nullptr};
};

struct NoSettings {};

/// Parses the value of one setting, if it was given.
void read_setting(const std::string& sink, const Setting& setting, Slot slot, const Texts& given,
                  FieldErrors& errors);
[[nodiscard]] FieldError unknown_setting(const std::string& sink, const std::string& name,
                                         const std::vector<std::string_view>& known);

/// The settings with their references replaced (base/reference.hpp).
struct Given {
  Texts texts;
  /// Settings with a reference that this machine cannot resolve, and why. They are not in `texts`.
  FieldErrors unresolved;
};
[[nodiscard]] Given resolve_settings(const std::string& sink, const Texts& settings);

/// Reads all settings. One with an error or an unresolved reference keeps its default; after the
/// latter `check` is not called.
template <class Settings>
Settings read_settings(const Declaration<Settings>& sink, const Given& given, FieldErrors& errors) {
  Settings settings;
  std::vector<std::string_view> known;
  for (const auto& [setting, slot] : sink.rows) {
    if (!given.unresolved.of(sink.name + "." + setting.name))
      read_setting(sink.name, setting, slot(settings), given.texts, errors);
    known.emplace_back(setting.name);
  }
  for (const auto& [name, value] : given.texts) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (sink.others != nullptr) {
      sink.others(settings)[name] = value;
    } else {
      errors.add(unknown_setting(sink.name, name, known));
    }
  }
  if (sink.check != nullptr && given.unresolved.empty()) sink.check(settings, errors);
  return settings;
}

/// Settings that are complete enough to deliver with, or the error.
template <class Settings>
Result<Settings> usable_settings(const Declaration<Settings>& sink, const SubscriptionSpec& spec) {
  const Given given = resolve_settings(sink.name, spec.sink_settings);
  if (auto status = given.unresolved.status(); !status) return pass(status);
  FieldErrors errors;
  Settings settings = read_settings(sink, given, errors);
  if (auto status = errors.status(); !status) return pass(status);
  return settings;
}

template <class Settings>
SinkKind make_kind(Declaration<Settings> sink) {
  SinkKind kind;
  kind.name = sink.name;
  kind.help = sink.help;
  kind.passed_on = sink.passed_on;
  Settings defaults;
  for (const auto& [setting, slot] : sink.rows) {
    kind.settings.push_back(setting);
    kind.settings.back().default_note = toml_text(setting, slot(defaults));
  }
  const auto shared = std::make_shared<const Declaration<Settings>>(std::move(sink));
  kind.check = [shared](const SubscriptionSpec& spec, FieldErrors& errors) {
    const Given given = resolve_settings(shared->name, spec.sink_settings);
    const Settings settings = read_settings(*shared, given, errors);
    if (shared->check_use != nullptr && given.unresolved.empty())
      shared->check_use(settings, spec, errors);
  };
  kind.check_here = [shared](const SubscriptionSpec& spec, FieldErrors& errors) {
    const Given given = resolve_settings(shared->name, spec.sink_settings);
    for (const FieldError& one : given.unresolved) errors.add(one);
    FieldErrors others;
    const Settings settings = read_settings(*shared, given, others);
    if (!errors.empty() || !others.empty()) return;
    if (shared->check_here != nullptr) shared->check_here(settings, errors);
    if constexpr (requires { settings.tls.certificate; })
      check_tls_here(shared->name, settings.tls, errors);
  };
  kind.make = [shared](const SubscriptionSpec& spec) -> Result<std::unique_ptr<Sink>> {
    OUTBOX_TRY(Settings settings, usable_settings(*shared, spec));
    if (shared->make_network != nullptr) return shared->make_network(std::move(settings), spec);
    return shared->make(std::move(settings));
  };
  kind.inspect = [shared](const SubscriptionSpec& spec) -> Result<Inspection> {
    OUTBOX_TRY(Settings settings, usable_settings(*shared, spec));
    if (shared->inspect != nullptr) return shared->inspect(std::move(settings), spec);
    OUTBOX_TRY(const auto opened, shared->make_network(std::move(settings), spec));
    return inspect_open(*opened);
  };
  if (shared->read_back == nullptr) return kind;
  kind.read_back = [shared](const SubscriptionSpec& spec, const TakeId& take) -> Result<ReadParts> {
    OUTBOX_TRY(const Settings settings, usable_settings(*shared, spec));
    return shared->read_back(settings, spec, take);
  };
  return kind;
}

}  // namespace outbox::sink
