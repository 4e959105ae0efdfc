#include "base/setting.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace outbox {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Json = nlohmann::ordered_json;

constexpr std::size_t kShownBytes = 40;

std::string in_unit(const Setting& setting, std::uint64_t value) {
  switch (setting.type) {
    case SettingType::size: return format_size(value);
    case SettingType::duration:
      return format_duration(milliseconds(static_cast<std::int64_t>(value)));
    default: return std::to_string(value);
  }
}

std::string quoted_start(std::string_view text) {
  return quote(text.size() > kShownBytes ? std::string(text.substr(0, kShownBytes)) + "..."
                                         : std::string(text));
}

bool in_range(const Setting& setting, std::uint64_t value) {
  return setting.most == 0 || (value >= setting.least && value <= setting.most);
}

/// How to write a value at the place of the wrong one.
std::string written(const Setting& setting, const std::string& writing, const std::string& value) {
  return (writing.empty() ? std::string(setting.key()) + " = " : writing) + value;
}

/// Parses a text into the slot that it visits.
struct Assigner {
  const Setting& setting;
  const std::string& text;
  const std::string& writing;

  Status operator()(std::string* slot) const {
    if (setting.type == SettingType::choice && choice() == setting.choices.end())
      return no_choice();
    if (setting.type == SettingType::path && text.starts_with('~')) {
      return fail(Errc::invalid_argument, "begins with ~, which only a shell expands",
                  "write the directory out, or ${env:HOME} in its place");
    }
    if (setting.required && text.empty())
      return fail(Errc::invalid_argument, "is empty", setting.help);
    *slot = text;
    return {};
  }

  Status operator()(WordSlot slot) const {
    const auto found = choice();
    if (found == setting.choices.end()) return no_choice();
    *slot.value = static_cast<std::uint8_t>(found - setting.choices.begin());
    return {};
  }

  Status operator()(bool* slot) const {
    if (text != "true" && text != "false")
      return wrong("write " + written(setting, writing, "true or false"));
    *slot = text == "true";
    return {};
  }

  Status operator()(std::size_t* slot) const {
    return setting.type == SettingType::size ? size(*slot) : count(*slot);
  }

  Status operator()(milliseconds* slot) const {
    OUTBOX_TRY(const microseconds value, duration());
    *slot = std::chrono::duration_cast<milliseconds>(value);
    if (*slot != value) return wrong("the shortest unit is ms");
    return {};
  }
  Status operator()(microseconds* slot) const {
    OUTBOX_TRY(*slot, duration());
    return {};
  }

  Status operator()(Rate* slot) const {
    if (text.empty()) return *slot = {}, Status();
    OUTBOX_TRY(*slot, parse_rate(text));
    return {};
  }

  Status operator()(std::vector<std::string>* slot) const { return assign(slot, items()); }
  Status operator()(std::vector<milliseconds>* slot) const { return assign(slot, items()); }

  Status operator()(std::map<std::string, std::string>* /*slot*/) const {
    return misfit(setting, "text", "set it in the configuration file");
  }

 private:
  [[nodiscard]] tl::unexpected<Error> wrong(std::string hint) const {
    return misfit(setting, setting.secret ? "something else" : quoted_start(text), std::move(hint));
  }
  [[nodiscard]] tl::unexpected<Error> out_of_range() const {
    return wrong("choose a value from " + setting.range());
  }
  [[nodiscard]] std::vector<std::string_view>::const_iterator choice() const {
    return std::find(setting.choices.begin(), setting.choices.end(), text);
  }
  /// The suggestion is quoted, as in the file.
  [[nodiscard]] tl::unexpected<Error> no_choice() const {
    const auto near = nearest(text, setting.choices);
    return wrong(near ? "did you mean " + quote(*near) + "?" : "choose one of " + setting.range());
  }

  [[nodiscard]] std::vector<std::string> items() const {
    std::vector<std::string> items;
    for (std::size_t from = 0; from <= text.size() && !text.empty();) {
      const std::size_t comma = std::min(text.find(',', from), text.size());
      items.push_back(text.substr(from, comma - from));
      from = comma + 1;
    }
    return items;
  }

  Status count(std::size_t& slot) const {
    std::size_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end)
      return wrong("write " + written(setting, writing, std::to_string(slot)));
    if (!in_range(setting, value))
      return misfit(setting, text, "choose a value from " + setting.range());
    slot = value;
    return {};
  }

  Status size(std::size_t& slot) const {
    const auto value = parse_size(text);
    if (!value) return wrong(value.error().hint);
    if (!in_range(setting, *value)) return out_of_range();
    slot = *value;
    return {};
  }

  [[nodiscard]] Result<microseconds> duration() const {
    const auto value = parse_duration(text);
    const bool number = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    if (!value) return wrong(number ? needs_unit(setting, text, writing) : value.error().hint);
    if (!in_range(setting, static_cast<std::uint64_t>(value->count()) / 1000))
      return out_of_range();
    return *value;
  }
};

SettingType find_type(Slot place, const Traits& traits) {
  struct Type {
    SettingType operator()(const std::string*) const { return SettingType::text; }
    SettingType operator()(const bool*) const { return SettingType::boolean; }
    SettingType operator()(const std::size_t*) const { return SettingType::count; }
    SettingType operator()(const milliseconds*) const { return SettingType::duration; }
    SettingType operator()(const microseconds*) const { return SettingType::duration; }
    SettingType operator()(const Rate*) const { return SettingType::rate; }
    SettingType operator()(const std::vector<std::string>*) const { return SettingType::list; }
    SettingType operator()(const std::vector<milliseconds>*) const { return SettingType::list; }
    SettingType operator()(const std::map<std::string, std::string>*) const {
      return SettingType::table;
    }
    SettingType operator()(const WordSlot&) const { return SettingType::choice; }
  };
  if (traits.type != SettingType::text) return traits.type;
  return traits.choices.empty() ? std::visit(Type{}, place) : SettingType::choice;
}

struct ToJson {
  const Setting& setting;

  Json operator()(const std::size_t* value) const {
    return setting.type == SettingType::size ? Json(format_size(*value)) : Json(*value);
  }
  Json operator()(const WordSlot& slot) const { return slot.words[*slot.value]; }
  Json operator()(const milliseconds* value) const { return format_duration(*value); }
  Json operator()(const microseconds* value) const { return format_duration(*value); }
  Json operator()(const Rate* value) const { return format_rate(*value); }
  Json operator()(const std::vector<milliseconds>* value) const {
    Json items = Json::array();
    for (const milliseconds item : *value) items.push_back(format_duration(item));
    return items;
  }
  template <class Value>
  Json operator()(const Value* value) const {
    return *value;
  }
};

}  // namespace

std::string_view to_string(SettingType type) {
  switch (type) {
    case SettingType::text: return "string";
    case SettingType::url: return "URL";
    case SettingType::path: return "path";
    case SettingType::choice: return "choice";
    case SettingType::boolean: return "boolean";
    case SettingType::count: return "integer";
    case SettingType::size: return "size";
    case SettingType::duration: return "duration";
    case SettingType::rate: return "rate";
    case SettingType::list: return "array of strings";
    case SettingType::table: return "table of strings";
  }
  return "";
}

std::string_view Setting::section() const {
  return std::string_view(name).substr(0, name.find('.'));
}

std::string_view Setting::key() const { return std::string_view(name).substr(name.find('.') + 1); }

std::string Setting::range() const {
  if (type == SettingType::boolean) return "true | false";
  std::string text;
  for (const std::string_view choice : choices)
    text.append(text.empty() ? "" : " | ").append(choice);
  if (most != 0) text = in_unit(*this, least) + " to " + in_unit(*this, most);
  return text;
}

std::string Setting::expectation() const {
  const std::string limits = most == 0 ? "" : " from " + range();
  switch (type) {
    case SettingType::text: return "a string";
    case SettingType::url: return "a URL";
    case SettingType::path: return "a path";
    case SettingType::choice: return "one of " + range();
    case SettingType::boolean: return "true or false";
    case SettingType::count: return "an integer" + limits;
    case SettingType::size: return "a size such as \"16MiB\"" + limits;
    case SettingType::duration: return "a duration such as \"15s\"" + limits;
    case SettingType::rate: return "a rate such as \"200/s\"";
    case SettingType::list: return "an array of strings";
    case SettingType::table: return "a table of strings";
  }
  return "";
}

Setting make_setting(std::string name, Slot place, Traits traits, std::string help) {
  const SettingType type = find_type(place, traits);
  if (const auto* const slot = std::get_if<WordSlot>(&place))
    traits.choices.assign(slot->words.begin(), slot->words.end());
  return {.name = std::move(name),
          .type = type,
          .help = std::move(help),
          .least = traits.range.least,
          .most = traits.range.most,
          .choices = std::move(traits.choices),
          .default_note = std::move(traits.default_note),
          .required = traits.required,
          .secret = traits.secret,
          .exclusive = traits.exclusive};
}

Status assign(const Setting& setting, Slot slot, const std::string& text,
              const std::string& writing) {
  return std::visit(Assigner{setting, text, writing}, slot);
}

Status assign(Slot slot, std::vector<std::string> items) {
  if (auto* const* const texts = std::get_if<std::vector<std::string>*>(&slot)) {
    **texts = std::move(items);
    return {};
  }
  std::vector<milliseconds> lengths;
  for (const std::string& item : items) {
    const auto length = parse_duration(item);
    if (!length || *length % milliseconds(1) != microseconds(0))
      return fail(Errc::invalid_argument, in_quotes(item) + " is not a duration in whole ms",
                  "such as \"5s\", \"10min\" or \"2h\"");
    lengths.push_back(std::chrono::duration_cast<milliseconds>(*length));
  }
  *std::get<std::vector<milliseconds>*>(slot) = std::move(lengths);
  return {};
}

tl::unexpected<Error> misfit(const Setting& setting, const std::string& found, std::string hint) {
  return fail(Errc::invalid_argument, "expected " + setting.expectation() + ", found " + found,
              std::move(hint));
}

std::string needs_unit(const Setting& setting, const std::string& number,
                       const std::string& writing) {
  std::string fitting;
  for (const char* const unit : {"s", "ms", "min", "h"}) {
    const auto value = parse_duration(number + unit);
    if (!value || !in_range(setting, static_cast<std::uint64_t>(value->count()) / 1000)) continue;
    const std::string text = writing.empty() ? quote(number + unit) : number + unit;
    fitting += fitting.empty() ? written(setting, writing, text) : " or " + text;
  }
  return "a duration needs a unit: " + (fitting.empty() ? "ms, s, min, h or d" : fitting);
}

Json to_json(const Setting& setting, Slot slot) { return std::visit(ToJson{setting}, slot); }

std::string toml_text(const Json& value) {
  if (value.is_string()) return quote(value.get_ref<const std::string&>());
  if (!value.is_structured()) return write_json(value);
  std::string text;
  for (const auto& [key, item] : value.items()) {
    text += text.empty() ? "" : ", ";
    if (value.is_object()) text += quote(key) + " = ";
    text += toml_text(item);
  }
  return value.is_object() ? "{" + text + "}" : "[" + text + "]";
}

std::string toml_text(const Setting& setting, Slot slot) {
  return toml_text(to_json(setting, slot));
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20U || byte == 0x7fU) {
      append_hex(out.append("\\u00"), c, kUpperHexDigits);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace outbox
