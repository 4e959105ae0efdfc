#include "format/format.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "event/headers.hpp"

namespace outbox::format {
namespace {

constexpr std::array<std::string_view, 5> kNames{"raw", "json", "cloudevents", "cloudevents-json",
                                                 "debezium"};
using Make = FormatPointer (*)(const SubscriptionSpec&, FieldErrors&);
constexpr std::array<Make, kNames.size()> kMakers{raw_format, json_format, cloudevents_format,
                                                  cloudevents_json_format, debezium_format};

}  // namespace

std::span<const std::string_view> format_names() { return kNames; }

FormatPointer make_format(const SubscriptionSpec& spec, FieldErrors& errors) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames.at(i) == spec.format) return kMakers.at(i)(spec, errors);
  }
  errors.add(
      {"format", "unknown format " + in_quotes(spec.format), did_you_mean(spec.format, kNames)});
  return nullptr;
}

std::string id_header(std::string_view format, std::string_view attribute_prefix) {
  if (format == "debezium") return "id";
  if (format == "cloudevents") return std::string(attribute_prefix) + "id";
  return std::string(event::kIdHeader);
}

const std::string* find_option(const SubscriptionSpec& spec, std::string_view name) {
  const auto found = spec.format_options.find(std::string(name));
  return found == spec.format_options.end() ? nullptr : &found->second;
}

void check_options(const SubscriptionSpec& spec, std::span<const std::string_view> known,
                   FieldErrors& errors) {
  for (const auto& [name, value] : spec.format_options) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    errors.add({"format_options." + name, "format " + spec.format + " has no such option",
                known.empty() ? "it has none" : did_you_mean(name, known)});
  }
}

}  // namespace outbox::format
