#include "subscription/spec.hpp"

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "event/text_rules.hpp"
#include "event/utf8.hpp"
#include "format/render.hpp"
#include "subscription/group.hpp"
#include "subscription/retry_policy.hpp"

/// Stores durations and rates as text with a unit.
template <>
struct nlohmann::adl_serializer<outbox::Rate> {
  static void to_json(json& to, const outbox::Rate& from) { to = outbox::format_rate(from); }
  static void from_json(const json& from, outbox::Rate& to) {
    const auto text = from.get<std::string>();
    const auto rate = outbox::parse_rate(text.empty() ? "1/s" : text);
    if (!rate) throw json::type_error::create(302, "not a rate", &from);
    to = text.empty() ? outbox::Rate{} : *rate;
  }
};
template <>
struct nlohmann::adl_serializer<std::chrono::milliseconds> {
  static void to_json(json& to, std::chrono::milliseconds from) {
    to = outbox::format_duration(from);
  }
  static void from_json(const json& from, std::chrono::milliseconds& to) {
    const auto length = outbox::parse_duration(from.get<std::string>());
    if (!length) throw json::type_error::create(302, "not a duration", &from);
    to = std::chrono::duration_cast<std::chrono::milliseconds>(*length);
  }
};

namespace outbox::subscription {
namespace {

using Json = nlohmann::json;
using Texts = std::map<std::string, std::string>;
using Globs = std::vector<std::string>;

Status check_globs(std::string_view field, const Globs& globs) {
  for (const auto& glob : globs) {
    if (glob.empty())
      return bad_field(field, "a glob is empty: it would match nothing", "write * for everything");
    OUTBOX_TRY(event::check_name(field, glob));
  }
  return {};
}

Status check_match_headers(const Texts& headers) {
  for (const auto& [name, value] : headers) {
    if (!event::is_token(name))
      return bad_field("match_headers", in_quotes(name) + " is not a header name");
    OUTBOX_TRY(event::check_header_value("match_headers", name, value));
  }
  return {};
}

/// Checks only what storing requires: the sink itself checks its settings.
Status check_sink(const SubscriptionSpec& spec) {
  OUTBOX_TRY(event::check_required_name("sink", spec.sink));
  for (const auto& [name, value] : spec.sink_settings) {
    OUTBOX_TRY(event::check_required_name("sink_settings", name));
    const bool storable = event::is_utf8(value) && value.find('\0') == std::string::npos;
    if (!storable) return bad_field("sink_settings." + name, "is not text");
  }
  return {};
}

/// The members of the stored object: one table for reading, writing and comparing.
using Time = std::chrono::milliseconds;
using Member =
    std::variant<std::string SubscriptionSpec::*, Globs SubscriptionSpec::*,
                 Texts SubscriptionSpec::*, std::size_t SubscriptionSpec::*,
                 Time SubscriptionSpec::*, Delays SubscriptionSpec::*, Rate SubscriptionSpec::*,
                 OnReject SubscriptionSpec::*, OnDead SubscriptionSpec::*>;
constexpr std::array<const char*, 9> kKinds{"a string",
                                            "an array of strings",
                                            "an object of strings",
                                            "a number",
                                            "a duration",
                                            "an array of durations",
                                            "a rate",
                                            "a string",
                                            "a string"};
constexpr std::array<std::pair<std::string_view, Member>, 21> kMembers{{
    {"format", &SubscriptionSpec::format},
    {"group", &SubscriptionSpec::group},
    {"key", &SubscriptionSpec::key},
    {"on_dead", &SubscriptionSpec::on_dead},
    {"on_reject", &SubscriptionSpec::on_reject},
    {"rate", &SubscriptionSpec::rate},
    {"sink", &SubscriptionSpec::sink},
    {"topic", &SubscriptionSpec::topic},
    {"aggregate_types", &SubscriptionSpec::aggregate_types},
    {"delays", &SubscriptionSpec::delays},
    {"event_types", &SubscriptionSpec::event_types},
    {"format_options", &SubscriptionSpec::format_options},
    {"headers", &SubscriptionSpec::headers},
    {"match_headers", &SubscriptionSpec::match_headers},
    {"sink_settings", &SubscriptionSpec::sink_settings},
    {"max_attempts", &SubscriptionSpec::max_attempts},
    {"max_waiting", &SubscriptionSpec::max_waiting},
    {"retry_factor", &SubscriptionSpec::retry_factor},
    {"retry_jitter", &SubscriptionSpec::retry_jitter},
    {"retry_base", &SubscriptionSpec::retry_base},
    {"retry_cap", &SubscriptionSpec::retry_cap},
}};

std::string to_text(const Json& json) { return write_json(json); }

template <class Value>
Json make_json(const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    return to_word(value);
  } else {
    return value;
  }
}

template <class Value>
Status read_value(const std::string& name, const Json& json, Value& into) {
  if constexpr (std::is_enum_v<Value>) {
    const auto word = json.get<std::string>();
    const auto value = from_word<Value>(word);
    if (!value)
      return bad_field(name, "unknown value " + in_quotes(word), did_you_mean(word, kWords<Value>));
    into = *value;
  } else {
    json.get_to(into);
  }
  return {};
}

Status read_member(const std::string& name, const Json& value, SubscriptionSpec& into) {
  std::array<std::string_view, kMembers.size()> known;
  for (std::size_t i = 0; i < known.size(); ++i) {
    known[i] = kMembers[i].first;
    if (known[i] != name) continue;
    const Member& found = kMembers[i].second;
    try {
      return std::visit([&](auto member) { return read_value(name, value, into.*member); }, found);
    } catch (const Json::type_error&) {
      return bad_field(name, std::string("is not ") + kKinds.at(found.index()));
    }
  }
  return bad_field(name, "unknown setting of a subscription", did_you_mean(name, known));
}

}  // namespace

void check(const SubscriptionSpec& spec, FieldErrors& errors) {
  for (const Status& status : {event::check_plain_name("name", spec.name), check_sink(spec),
                               check_globs("event_types", spec.event_types),
                               check_globs("aggregate_types", spec.aggregate_types),
                               check_match_headers(spec.match_headers), check_group(spec)}) {
    if (!status) errors.add(status.error());
  }
  if (spec.key.empty()) {
    errors.add(
        {"key", "is empty: all events would have the same key", "the default is {aggregate_id}"});
  }
  if (const Status rate = check_rate(spec.rate); !rate) errors.add("rate", rate.error());
  RetryPolicy::check(spec, errors);
  format::Renderer::check(spec, errors);
}

Status validate(const SubscriptionSpec& spec) {
  FieldErrors errors;
  check(spec, errors);
  return errors.status();
}

std::string to_json(const SubscriptionSpec& spec) {
  Json json = Json::object();
  for (const auto& [name, member] : kMembers) {
    std::visit([&, key = std::string(name)](auto of_spec) { json[key] = make_json(spec.*of_spec); },
               member);
  }
  return to_text(json);
}

Result<SubscriptionSpec> from_json(std::string_view name, std::string_view json) {
  const Json object = try_parse_json<Json>(json);
  if (!object.is_object()) {
    return fail(Errc::corrupt,
                "subscription " + in_quotes(name) + ": its stored settings are not a JSON object");
  }
  SubscriptionSpec spec;
  spec.name = name;
  for (const auto& [member, value] : object.items()) {
    OUTBOX_TRY(read_member(member, value, spec));
  }
  return spec;
}

namespace {

/// Collects differences. A name with a dot is an entry of a table, whose value may be secret.
class Comparison {
 public:
  explicit Comparison(const ShowValue& show) : show_(show) {}

  template <class Value>
  void value(std::string_view name, const Value& before, const Value& after) {
    if (before != after)
      add(std::string(name), to_text(make_json(before)), to_text(make_json(after)));
  }
  void value(std::string_view /*name*/, const Texts& /*before*/, const Texts& /*after*/) {}

  void texts(std::string_view prefix, const Texts& before, const Texts& after) {
    Texts all = before;
    all.insert(after.begin(), after.end());
    for (const auto& [name, unused] : all) {
      const auto was = text(before, name);
      const auto is = text(after, name);
      if (was != is) add(std::string(prefix) + "." + name, was, is);
    }
  }

  std::vector<SettingDifference> take() { return std::move(found_); }

 private:
  using OptionalText = std::optional<std::string>;

  static OptionalText text(const Texts& texts, const std::string& name) {
    const auto at = texts.find(name);
    return at == texts.end() ? OptionalText() : to_text(at->second);
  }
  [[nodiscard]] std::string shown(const std::string& setting, const OptionalText& json) const {
    if (!json) return "-";
    if (show_) return show_(setting, *json);
    return setting.find('.') == std::string::npos ? *json : "(not shown)";
  }
  void add(const std::string& setting, const OptionalText& before, const OptionalText& after) {
    found_.push_back(
        {.setting = setting, .before = shown(setting, before), .after = shown(setting, after)});
  }

  const ShowValue& show_;
  std::vector<SettingDifference> found_;
};

}  // namespace

std::vector<SettingDifference> differences(const SubscriptionSpec& before,
                                           const SubscriptionSpec& after, const ShowValue& show) {
  Comparison compare(show);
  for (const auto& [name, member] : kMembers) {
    std::visit([&, key = name](auto of) { compare.value(key, before.*of, after.*of); }, member);
  }
  compare.texts("match_headers", before.match_headers, after.match_headers);
  compare.texts("format_options", before.format_options, after.format_options);
  compare.texts("headers", before.headers, after.headers);
  // The settings of two sinks are unrelated, even with the same name.
  if (before.sink == after.sink) {
    compare.texts(before.sink, before.sink_settings, after.sink_settings);
  } else {
    compare.texts(before.sink, before.sink_settings, {});
    compare.texts(after.sink, {}, after.sink_settings);
  }
  return compare.take();
}

}  // namespace outbox::subscription
