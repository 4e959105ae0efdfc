#include "event/spec.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "event/render.hpp"
#include "event/text_rules.hpp"
#include "event/utf8.hpp"

namespace outbox::event {
namespace {

using Json = nlohmann::json;
using Texts = std::map<std::string, std::string>;
using Globs = std::vector<std::string>;

constexpr std::size_t kLongestSubscriptionName = 63;
constexpr std::array<std::string_view, 2> kStarts{"beginning", "now"};

tl::unexpected<Error> bad(std::string_view field, std::string_view what, std::string hint = {}) {
  return fail(Errc::invalid_argument, std::string(field).append(": ").append(what),
              std::move(hint));
}

Status check_subscription_name(std::string_view name) {
  if (name.empty()) return bad("name", "is empty");
  if (name.size() > kLongestSubscriptionName) return bad("name", "is longer than 63 bytes");
  const auto allowed = [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; };
  if (std::all_of(name.begin(), name.end(), allowed)) return {};
  return bad("name", in_quotes(name) + " has characters that are not allowed",
             "use letters, digits, '-', '_' and '.'");
}

Status check_globs(std::string_view field, const Globs& globs) {
  for (const auto& glob : globs) {
    if (glob.empty())
      return bad(field, "a glob is empty: it would match nothing", "write * for everything");
    if (auto status = check_name(field, glob); !status) return status;
  }
  return {};
}

Status check_match_headers(const Texts& headers) {
  for (const auto& [name, value] : headers) {
    if (!is_token(name)) return bad("match_headers", in_quotes(name) + " is not a header name");
    if (auto status = check_header_value("match_headers", name, value); !status) return status;
  }
  return {};
}

/// Only what storing requires: the sink itself checks its settings.
Status check_sink(const SubscriptionSpec& spec) {
  if (auto status = check_required_name("sink", spec.sink); !status) return status;
  for (const auto& [name, value] : spec.sink_settings) {
    if (auto status = check_required_name("sink_settings", name); !status) return status;
    const bool storable = is_utf8(value) && value.find('\0') == std::string::npos;
    if (!storable) return bad("sink_settings." + name, "is not text");
  }
  return {};
}

Status check_start(std::string_view start) {
  if (std::find(kStarts.begin(), kStarts.end(), start) != kStarts.end()) return {};
  return bad("start", "unknown place " + in_quotes(start), did_you_mean(start, kStarts));
}

/// The members of the stored object: one table for reading, writing and comparing.
struct Members {
  std::map<std::string_view, std::string SubscriptionSpec::*> words{
      {"sink", &SubscriptionSpec::sink},
      {"format", &SubscriptionSpec::format},
      {"topic", &SubscriptionSpec::topic},
      {"key", &SubscriptionSpec::key}};
  std::map<std::string_view, Globs SubscriptionSpec::*> globs{
      {"event_types", &SubscriptionSpec::event_types},
      {"aggregate_types", &SubscriptionSpec::aggregate_types}};
  std::map<std::string_view, Texts SubscriptionSpec::*> texts{
      {"sink_settings", &SubscriptionSpec::sink_settings},
      {"match_headers", &SubscriptionSpec::match_headers},
      {"headers", &SubscriptionSpec::headers}};

  [[nodiscard]] std::vector<std::string_view> names() const {
    std::vector<std::string_view> all;
    for (const auto& member : words) all.push_back(member.first);
    for (const auto& member : globs) all.push_back(member.first);
    for (const auto& member : texts) all.push_back(member.first);
    return all;
  }
};

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const Members& members() {
  static const Members instance;
  return instance;
}

bool all_strings(const Json& value) {
  return std::all_of(value.begin(), value.end(), [](const Json& one) { return one.is_string(); });
}

Status read_member(const std::string& name, const Json& value, SubscriptionSpec& into) {
  if (const auto word = members().words.find(name); word != members().words.end()) {
    if (!value.is_string()) return bad(name, "is not a string");
    into.*(word->second) = value.get<std::string>();
    return {};
  }
  if (const auto globs = members().globs.find(name); globs != members().globs.end()) {
    if (!value.is_array() || !all_strings(value)) return bad(name, "is not an array of strings");
    into.*(globs->second) = value.get<Globs>();
    return {};
  }
  if (const auto texts = members().texts.find(name); texts != members().texts.end()) {
    if (!value.is_object() || !all_strings(value)) return bad(name, "is not an object of strings");
    into.*(texts->second) = value.get<Texts>();
    return {};
  }
  return bad(name, "unknown setting of a subscription", did_you_mean(name, members().names()));
}

}  // namespace

void check(const SubscriptionSpec& spec, FieldErrors& errors) {
  for (const Status& status : {check_subscription_name(spec.name), check_sink(spec),
                               check_globs("event_types", spec.event_types),
                               check_globs("aggregate_types", spec.aggregate_types),
                               check_match_headers(spec.match_headers), check_start(spec.start)}) {
    if (!status) errors.add(status.error());
  }
  if (spec.key.empty()) {
    errors.add(
        {"key", "is empty: all events would have the same key", "the default is {aggregate_id}"});
  }
  Renderer::check(spec, errors);
}

Status validate(const SubscriptionSpec& spec) {
  FieldErrors errors;
  check(spec, errors);
  return errors.status();
}

std::string to_json(const SubscriptionSpec& spec) {
  Json json = Json::object();
  for (const auto& [name, member] : members().words) json[std::string(name)] = spec.*member;
  for (const auto& [name, member] : members().globs) json[std::string(name)] = spec.*member;
  for (const auto& [name, member] : members().texts) json[std::string(name)] = spec.*member;
  return text_of(json);
}

Result<SubscriptionSpec> from_json(std::string_view name, std::string_view json) {
  const Json object = Json::parse(json, nullptr, false);
  if (!object.is_object()) {
    return fail(Errc::corrupt,
                "subscription " + in_quotes(name) + ": its stored settings are not a JSON object");
  }
  SubscriptionSpec spec;
  spec.name = name;
  for (const auto& [member, value] : object.items()) {
    if (auto status = read_member(member, value, spec); !status) return pass(status);
  }
  return spec;
}

namespace {

/// Collects what differs. A name with a dot is an entry of a table, whose value may be secret.
class Comparison {
 public:
  explicit Comparison(const ShowValue& show) : show_(show) {}

  template <class Value>
  void value(std::string_view name, const Value& before, const Value& after) {
    if (before != after) add(std::string(name), text_of(before), text_of(after));
  }

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
    return at == texts.end() ? OptionalText() : text_of(at->second);
  }
  [[nodiscard]] std::string shown(const std::string& setting, const OptionalText& json) const {
    if (!json) return "-";
    if (show_) return show_(setting, *json);
    return setting.find('.') == std::string::npos ? *json : "(not shown)";
  }
  void add(std::string setting, const OptionalText& before, const OptionalText& after) {
    SettingDifference one{
        .setting = {}, .before = shown(setting, before), .after = shown(setting, after)};
    one.setting = std::move(setting);
    found_.push_back(std::move(one));
  }

  const ShowValue& show_;
  std::vector<SettingDifference> found_;
};

}  // namespace

std::vector<SettingDifference> differences(const SubscriptionSpec& before,
                                           const SubscriptionSpec& after, const ShowValue& show) {
  Comparison compare(show);
  for (const auto& [name, member] : members().words)
    compare.value(name, before.*member, after.*member);
  for (const auto& [name, member] : members().globs)
    compare.value(name, before.*member, after.*member);
  compare.texts("match_headers", before.match_headers, after.match_headers);
  compare.texts("headers", before.headers, after.headers);
  // Settings of two sinks are unrelated, even with the same name.
  if (before.sink == after.sink) {
    compare.texts(before.sink, before.sink_settings, after.sink_settings);
  } else {
    compare.texts(before.sink, before.sink_settings, {});
    compare.texts(after.sink, {}, after.sink_settings);
  }
  return compare.take();
}

}  // namespace outbox::event
