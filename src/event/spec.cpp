#include "event/spec.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
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

/// Only what the stored form needs; what the settings mean is the sink's business.
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

/// The members of the stored object: one table for reading and writing.
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

Status validate(const SubscriptionSpec& spec) {
  if (auto status = check_subscription_name(spec.name); !status) return status;
  if (auto status = check_sink(spec); !status) return status;
  if (auto status = check_globs("event_types", spec.event_types); !status) return status;
  if (auto status = check_globs("aggregate_types", spec.aggregate_types); !status) return status;
  if (auto status = check_match_headers(spec.match_headers); !status) return status;
  if (auto status = check_start(spec.start); !status) return status;
  if (spec.key.empty())
    return bad("key", "is empty: all events would have the same key",
               "the default is {aggregate_id}");
  auto renderer = Renderer::create(spec);
  if (!renderer) return pass(renderer);
  return {};
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

constexpr std::string_view kNone = "-";
constexpr std::string_view kHidden = "(not shown)";

void compare_texts(std::string_view prefix, const Texts& before, const Texts& after,
                   std::vector<SettingDifference>& found) {
  std::set<std::string> names;
  for (const auto* const texts : {&before, &after}) {
    for (const auto& text : *texts) names.insert(text.first);
  }
  for (const std::string& name : names) {
    const auto was = before.find(name);
    const auto is = after.find(name);
    const bool there = was != before.end() && is != after.end();
    if (there && was->second == is->second) continue;
    found.push_back({.setting = std::string(prefix) + "." + name,
                     .before = std::string(was == before.end() ? kNone : kHidden),
                     .after = std::string(is == after.end() ? kNone : kHidden)});
  }
}

}  // namespace

std::vector<SettingDifference> differences(const SubscriptionSpec& before,
                                           const SubscriptionSpec& after) {
  std::vector<SettingDifference> found;
  const auto compare = [&](std::string_view name, const auto& was, const auto& is) {
    if (was == is) return;
    found.push_back({.setting = std::string(name), .before = text_of(was), .after = text_of(is)});
  };
  for (const auto& [name, member] : members().words) compare(name, before.*member, after.*member);
  for (const auto& [name, member] : members().globs) compare(name, before.*member, after.*member);
  compare_texts("match_headers", before.match_headers, after.match_headers, found);
  compare_texts("headers", before.headers, after.headers, found);
  // A setting belongs to its sink: another sink's of the same name is another one.
  const bool same_sink = before.sink == after.sink;
  compare_texts(before.sink, before.sink_settings, same_sink ? after.sink_settings : Texts{},
                found);
  if (!same_sink) compare_texts(after.sink, {}, after.sink_settings, found);
  return found;
}

}  // namespace outbox::event
