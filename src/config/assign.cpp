#include "config/assign.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace outbox::config {
namespace {

using Type = Node::Type;

constexpr std::size_t kShownBytes = 40;

std::string found_text(const Setting& setting, std::string_view text) {
  if (setting.secret) return "something else";
  return quote(text.size() > kShownBytes ? std::string(text.substr(0, kShownBytes)) + "..."
                                         : std::string(text));
}

tl::unexpected<Error> unfit(const Setting& setting, std::string found, std::string hint) {
  return fail(Errc::invalid_argument,
              "expected " + expectation(setting) + ", found " + std::move(found), std::move(hint));
}

std::string key_for_hint(const Setting& setting) { return std::string(setting.key()); }

/// How a value is given where it came from (assign_text).
struct Writing {
  const Setting& setting;
  std::string before;

  [[nodiscard]] std::string plain(const std::string& value) const {
    return (before.empty() ? key_for_hint(setting) + " = " : before) + value;
  }
  [[nodiscard]] std::string value(const std::string& text) const {
    return before.empty() ? quote(text) : text;
  }
  [[nodiscard]] std::string string(const std::string& text) const { return plain(value(text)); }
};

Status check_range(const Setting& setting, std::uint64_t value, const std::string& text) {
  if (setting.most == 0 || (value >= setting.least && value <= setting.most)) return {};
  return unfit(setting, text, "choose a value from " + setting.range());
}

Status assign_choice(const Setting& setting, std::string& slot, const std::string& text) {
  if (std::find(setting.choices.begin(), setting.choices.end(), text) == setting.choices.end()) {
    const auto near = nearest(text, setting.choices);
    return unfit(setting, found_text(setting, text),
                 near ? "did you mean " + quote(*near) + "?" : "choose one of " + setting.range());
  }
  slot = text;
  return {};
}

Status assign_count(const Setting& setting, std::size_t& slot, const std::string& text,
                    const Writing& writing) {
  std::size_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || text.empty()) {
    return unfit(setting, found_text(setting, text),
                 "write " + writing.plain(std::to_string(slot)));
  }
  if (auto status = check_range(setting, value, text); !status) return status;
  slot = value;
  return {};
}

Status assign_size(const Setting& setting, std::size_t& slot, const std::string& text) {
  auto value = parse_size(text);
  if (!value) return unfit(setting, found_text(setting, text), value.error().hint);
  if (auto status = check_range(setting, *value, quote(text)); !status) return status;
  slot = *value;
  return {};
}

/// The number with each unit that makes it fit.
std::vector<std::string> with_units(const Setting& setting, const std::string& number) {
  std::vector<std::string> all;
  for (const char* const unit : {"s", "ms", "min", "h"}) {
    const auto value = parse_duration(number + unit);
    if (!value) continue;
    const auto ms = static_cast<std::uint64_t>(value->count()) / 1000;
    const bool fits = setting.most == 0 || (ms >= setting.least && ms <= setting.most);
    if (fits) all.push_back(number + unit);
  }
  return all;
}

std::string needs_unit(const Setting& setting, const std::string& number, const Writing& writing) {
  std::string fitting;
  for (const std::string& value : with_units(setting, number)) {
    fitting += fitting.empty() ? writing.string(value) : " or " + writing.value(value);
  }
  return "a duration needs a unit: " + (fitting.empty() ? "ms, s, min, h or d" : fitting);
}

Status assign_duration(const Setting& setting, std::chrono::milliseconds& slot,
                       const std::string& text, const Writing& writing) {
  auto value = parse_duration(text);
  const bool number = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  if (!value && number)
    return unfit(setting, found_text(setting, text), needs_unit(setting, text, writing));
  if (!value) return unfit(setting, found_text(setting, text), value.error().hint);
  const auto whole = std::chrono::duration_cast<std::chrono::milliseconds>(*value);
  if (whole != *value)
    return unfit(setting, found_text(setting, text), "no shorter unit than ms is used here");
  if (auto status = check_range(setting, static_cast<std::uint64_t>(whole.count()), quote(text));
      !status)
    return status;
  slot = whole;
  return {};
}

Status assign_boolean(const Setting& setting, bool& slot, const std::string& text,
                      const Writing& writing) {
  if (text != "true" && text != "false") {
    return unfit(setting, found_text(setting, text), "write " + writing.plain("true or false"));
  }
  slot = text == "true";
  return {};
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> items;
  std::size_t from = 0;
  while (from <= text.size() && !text.empty()) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    items.push_back(text.substr(from, comma - from));
    from = comma + 1;
  }
  return items;
}

/// The places a setting can live in, each with what text does to it.
struct TextAssigner {
  const Setting& setting;
  const std::string& text;
  Writing writing;

  Status operator()(std::string* slot) const {
    if (setting.kind == Kind::choice) return assign_choice(setting, *slot, text);
    *slot = text;
    return {};
  }
  Status operator()(bool* slot) const { return assign_boolean(setting, *slot, text, writing); }
  Status operator()(std::size_t* slot) const {
    return setting.kind == Kind::size ? assign_size(setting, *slot, text)
                                      : assign_count(setting, *slot, text, writing);
  }
  Status operator()(std::chrono::milliseconds* slot) const {
    return assign_duration(setting, *slot, text, writing);
  }
  Status operator()(std::vector<std::string>* slot) const {
    *slot = split_list(text);
    return {};
  }
  Status operator()(std::map<std::string, std::string>* /*slot*/) const {
    return unfit(setting, "text", "set it in the configuration file");
  }
};

std::string found_node(const Setting& setting, const Node& node) {
  const bool open = !setting.secret && node.type != Type::array && node.type != Type::table;
  std::string found(node.type == Type::string ? std::string_view("the string")
                                              : describe(node.type));
  if (!open) return node.type == Type::string ? "a string" : found;
  return found + " " +
         (node.type == Type::string ? found_text(setting, node.text)
                                    : node.text.substr(0, kShownBytes));
}

bool type_fits(const Setting& setting, Type type) {
  switch (setting.kind) {
    case Kind::text:
    case Kind::url:
    case Kind::choice:
    case Kind::duration: return type == Type::string;
    case Kind::boolean: return type == Type::boolean;
    case Kind::count: return type == Type::integer;
    case Kind::size: return type == Type::string || type == Type::integer;
    case Kind::list: return type == Type::array;
    case Kind::table: return type == Type::table;
  }
  return false;
}

std::string type_hint(const Setting& setting, const Node& node) {
  const std::string key = key_for_hint(setting);
  const bool scalar = node.type != Type::array && node.type != Type::table;
  if (setting.kind == Kind::duration && node.type == Type::integer) {
    return needs_unit(setting, node.text, {setting, {}});
  }
  if (setting.kind == Kind::list && node.type == Type::string)
    return "write " + key + " = [" + quote(node.text) + "]";
  if (setting.kind == Kind::text && scalar)
    return "write it in quotes: " + key + " = " + quote(node.text);
  if (setting.kind == Kind::choice)
    return "write it in quotes, such as " + key + " = " + quote(setting.choices.front());
  if (setting.kind == Kind::url)
    return "write " + key + " = \"postgresql://...\" or \"sqlite:PATH\"";
  if (setting.kind == Kind::boolean) return "write " + key + " = true or false, without quotes";
  if (setting.kind == Kind::count && node.type == Type::string)
    return "write it without quotes: " + key + " = 100";
  return key + " takes " + expectation(setting);
}

Status assign_items(const Setting& setting, std::vector<std::string>& slot, const Node& node) {
  std::vector<std::string> items;
  for (const Node& item : node.items) {
    if (item.type != Type::string) {
      return unfit(setting, std::string(describe(item.type)) + " in it",
                   "write each item in quotes");
    }
    items.push_back(item.text);
  }
  slot = std::move(items);
  return {};
}

Status assign_members(const Setting& setting, std::map<std::string, std::string>& slot,
                      const Node& node) {
  std::map<std::string, std::string> members;
  for (const Member& member : node.members) {
    if (member.value.type != Type::string) {
      return unfit(setting, std::string(describe(member.value.type)) + " at " + member.key,
                   "write each value in quotes");
    }
    members.emplace(member.key, member.value.text);
  }
  slot = std::move(members);
  return {};
}

struct Shower {
  const Setting& setting;
  std::string_view equals;

  std::string operator()(const std::string* value) const { return quote(*value); }
  std::string operator()(const bool* value) const { return *value ? "true" : "false"; }
  std::string operator()(const std::size_t* value) const {
    return setting.kind == Kind::size ? quote(format_size(*value)) : std::to_string(*value);
  }
  std::string operator()(const std::chrono::milliseconds* value) const {
    return quote(format_duration(*value));
  }
  std::string operator()(const std::vector<std::string>* value) const {
    std::string text = "[";
    for (const auto& item : *value) text.append(text.size() > 1 ? ", " : "").append(quote(item));
    return text + "]";
  }
  std::string operator()(const std::map<std::string, std::string>* value) const {
    std::string text = "{";
    for (const auto& [key, item] : *value) {
      text.append(text.size() > 1 ? ", " : "")
          .append(quote(key))
          .append(equals)
          .append(quote(item));
    }
    return text + "}";
  }
};

}  // namespace

Status assign_text(const Setting& setting, Slot slot, const std::string& text,
                   const std::string& writing) {
  return std::visit(TextAssigner{setting, text, Writing{setting, writing}}, slot);
}

Status assign_node(const Setting& setting, Slot slot, const Node& node) {
  if (!type_fits(setting, node.type))
    return unfit(setting, found_node(setting, node), type_hint(setting, node));
  if (auto* const list = std::get_if<std::vector<std::string>*>(&slot))
    return assign_items(setting, **list, node);
  if (auto* const table = std::get_if<std::map<std::string, std::string>*>(&slot)) {
    return assign_members(setting, **table, node);
  }
  return assign_text(setting, slot, node.text);
}

std::string show(const Setting& setting, Slot slot, Notation notation) {
  return std::visit(Shower{setting, notation == Notation::toml ? " = " : ": "}, slot);
}

std::string expectation(const Setting& setting) {
  switch (setting.kind) {
    case Kind::text: return "a string";
    case Kind::url: return "a URL";
    case Kind::choice: return "one of " + setting.range();
    case Kind::boolean: return "true or false";
    case Kind::count:
      return "an integer" + (setting.most == 0 ? std::string() : " from " + setting.range());
    case Kind::size: return "a size such as \"16MiB\" from " + setting.range();
    case Kind::duration: return "a duration such as \"15s\" from " + setting.range();
    case Kind::list: return "an array of strings";
    case Kind::table: return "a table of strings";
  }
  return "something else";
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

}  // namespace outbox::config
