// A setting of the program, of a subscription or of a sink: what people see of it, and how text
// becomes its value. Tables of settings make parser, checks, `--help`, `outbox config` and
// docs/reference. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <outbox/error.hpp>
#include <outbox/rate.hpp>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/words.hpp"

namespace outbox {

enum class SettingType {
  text,
  url,
  path,
  choice,
  boolean,
  count,
  size,
  duration,
  rate,
  list,
  table
};

/// The type for help and reference: "integer", "duration".
[[nodiscard]] std::string_view to_string(SettingType type);

struct Setting {
  std::string name;  ///< "relay.page"; for a subscription or a sink the key alone, "topic".
  SettingType type{SettingType::text};
  std::string help;
  std::uint64_t least{0};  ///< A count, a size in bytes, or a duration in milliseconds.
  std::uint64_t most{0};   ///< 0 stands for no range.
  std::vector<std::string_view> choices{};
  std::string default_note{};  ///< Shown where the default is not a fixed value.
  bool required{false};
  bool secret{false};     ///< Whether it may hold a password, and is shown without it.
  bool exclusive{false};  ///< Whether two subscriptions may not have the same value.

  [[nodiscard]] std::string_view section() const;
  [[nodiscard]] std::string_view key() const;
  /// The range as "1 to 10000", "1s to 10min" or "text | json"; empty if any value is allowed.
  [[nodiscard]] std::string range() const;
  /// What a value should be: "a duration such as \"15s\" from 1s to 10min".
  [[nodiscard]] std::string expectation() const;
};

/// Where an enumeration of one byte is stored, and its words (base/words.hpp).
struct WordSlot {
  std::uint8_t* value{nullptr};
  std::span<const std::string_view> words;
};

/// Where a value is stored. Its type corresponds to the setting's.
using Slot = std::variant<std::string*, bool*, std::size_t*, std::chrono::milliseconds*,
                          std::chrono::microseconds*, std::vector<std::string>*,
                          std::map<std::string, std::string>*,
                          std::vector<std::chrono::milliseconds>*, Rate*, WordSlot>;

template <class Value>
[[nodiscard]] Slot slot_at(Value* value) {
  if constexpr (std::is_enum_v<Value>) {
    return WordSlot{reinterpret_cast<std::uint8_t*>(value), kWords<Value>};
  } else {
    return value;
  }
}

/// The least and the greatest value: counts, bytes, or durations.
struct Range {
  constexpr Range() = default;
  constexpr Range(std::uint64_t from, std::uint64_t to) : least(from), most(to) {}
  constexpr Range(std::chrono::milliseconds from, std::chrono::milliseconds to)
      : Range(static_cast<std::uint64_t>(from.count()), static_cast<std::uint64_t>(to.count())) {}

  std::uint64_t least{0};
  std::uint64_t most{0};
};

/// The traits of a row's setting, as in Setting, besides the name, the place and the help.
struct Traits {
  /// Given only for what the place does not tell: url, path, size.
  SettingType type{SettingType::text};
  Range range{};
  std::vector<std::string_view> choices{};
  std::string default_note{};
  bool required{false};
  bool secret{false};
  bool exclusive{false};
};

/// `place` is a slot of the type of the place, which is null.
[[nodiscard]] Setting make_setting(std::string name, Slot place, Traits traits, std::string help);

/// A row of a table: a setting of an Owner, and the member of the Owner that holds its value. That
/// member's initializer is the default.
template <class Owner>
struct SettingRow {
  Setting setting;
  std::function<Slot(Owner&)> slot;

  /// {"port", &Printer::port, Traits{.range = {1, 65535}}, "Where it listens."}
  template <class Base, class Value>
  SettingRow(std::string name, Value Base::*place, Traits traits, std::string help)
      : setting(make_setting(std::move(name), slot_at<Value>(nullptr), std::move(traits),
                             std::move(help))),
        slot([place](Owner& owner) -> Slot { return slot_at(&(owner.*place)); }) {}
  template <class Base, class Value>
  SettingRow(std::string name, Value Base::*place, std::string help)
      : SettingRow(std::move(name), place, Traits{}, std::move(help)) {}

  /// A row for a member of a part: {"tls_ca", &Printer::tls, &TlsSettings::ca, "Whom it trusts."}
  template <class Base, class Part, class Value>
  SettingRow(std::string name, Part Base::*part, Value Part::*place, Traits traits,
             std::string help)
      : setting(make_setting(std::move(name), slot_at<Value>(nullptr), std::move(traits),
                             std::move(help))),
        slot([part, place](Owner& owner) -> Slot { return slot_at(&(owner.*part.*place)); }) {}
  template <class Base, class Part, class Value>
  SettingRow(std::string name, Part Base::*part, Value Part::*place, std::string help)
      : SettingRow(std::move(name), part, place, Traits{}, std::move(help)) {}
};

template <class Owner>
using SettingRows = std::vector<SettingRow<Owner>>;

/// The tables, one after the other.
template <class Owner>
SettingRows<Owner> joined(std::initializer_list<SettingRows<Owner>> tables) {
  SettingRows<Owner> all;
  for (const auto& table : tables) all.insert(all.end(), table.begin(), table.end());
  return all;
}

/// Parses the text into the slot; commas separate the items of a list. For the hints, `writing` is
/// what precedes the value, such as "OUTBOX_RELAY_PAGE="; it is empty for `key = value` in a file.
[[nodiscard]] Status assign(const Setting& setting, Slot slot, const std::string& text,
                            const std::string& writing = {});
/// The same of a list.
[[nodiscard]] Status assign(Slot slot, std::vector<std::string> items);
/// The error of a value that does not fit. `found` is the value as it was written.
[[nodiscard]] tl::unexpected<Error> misfit(const Setting& setting, const std::string& found,
                                           std::string hint);
/// The hint for a number where a duration belongs.
[[nodiscard]] std::string needs_unit(const Setting& setting, const std::string& number,
                                     const std::string& writing = {});

[[nodiscard]] nlohmann::ordered_json to_json(const Setting& setting, Slot slot);
/// The value as in a TOML file: quoted strings, [arrays], {tables}.
[[nodiscard]] std::string toml_text(const nlohmann::ordered_json& value);
[[nodiscard]] std::string toml_text(const Setting& setting, Slot slot);
/// The text as a string of TOML and JSON.
[[nodiscard]] std::string quote(std::string_view text);

}  // namespace outbox
