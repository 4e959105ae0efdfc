// One setting, of the program, of a subscription or of a sink: what people see of it, and how text becomes its value. Tables of
// these make the parser, the checks, `--help`, `outbox config` and docs/reference. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <outbox/error.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace outbox {

enum class SettingType { text, url, path, choice, boolean, count, size, duration, list, table };

/// "integer", "duration": for help and reference.
[[nodiscard]] std::string_view to_string(SettingType type);

struct Setting {
  std::string name;  ///< "relay.page"; of a subscription or a sink: the key alone, "topic".
  SettingType type{SettingType::text};
  std::string help;
  std::uint64_t least{0};  ///< A count as it is, a size in bytes, a duration in milliseconds.
  std::uint64_t most{0};   ///< 0: no range.
  std::vector<std::string_view> choices{};
  std::string default_note{};  ///< Shown where the default is not a fixed value.
  bool required{false};
  bool secret{false};     ///< May hold a password: shown without it.
  bool exclusive{false};  ///< No two subscriptions may have the same value.

  [[nodiscard]] std::string_view section() const;
  [[nodiscard]] std::string_view key() const;
  /// "1 to 10000", "1s to 10min", "text | json"; empty: anything.
  [[nodiscard]] std::string range() const;
  /// "a duration such as \"15s\" from 1s to 10min": what a value should be.
  [[nodiscard]] std::string expectation() const;
};

/// Where a value is stored. Its type goes with the setting's.
using Slot = std::variant<std::string*, bool*, std::size_t*, std::chrono::milliseconds*,
                          std::chrono::microseconds*, std::vector<std::string>*,
                          std::map<std::string, std::string>*>;

/// A row of a table: a setting of an Owner. Its default is the one of the Owner.
template <class Owner>
struct SettingRow {
  Setting setting;
  Slot (*slot)(Owner&);
};

/// One table after the other.
template <class Owner>
std::vector<SettingRow<Owner>> joined(
    std::initializer_list<std::vector<SettingRow<Owner>>> tables) {
  std::vector<SettingRow<Owner>> all;
  for (const auto& table : tables) all.insert(all.end(), table.begin(), table.end());
  return all;
}

/// Parses the text into the slot; lists are separated by commas. `writing`: what precedes the value where it was written, such as
/// "OUTBOX_RELAY_PAGE=", for the hints; empty: a file, where it is `key = value`.
[[nodiscard]] Status assign(const Setting& setting, Slot slot, const std::string& text,
                            const std::string& writing = {});
/// The error of a value that does not fit. `found`: as it was written.
[[nodiscard]] tl::unexpected<Error> misfit(const Setting& setting, const std::string& found,
                                           std::string hint);
/// The hint for a number where a duration belongs.
[[nodiscard]] std::string needs_unit(const Setting& setting, const std::string& number,
                                     const std::string& writing = {});

[[nodiscard]] nlohmann::ordered_json to_json(const Setting& setting, Slot slot);
/// As it is written in a TOML file: quoted strings, [arrays], {tables}.
[[nodiscard]] std::string toml_text(const nlohmann::ordered_json& value);
[[nodiscard]] std::string toml_text(const Setting& setting, Slot slot);
/// The text as a string of TOML and JSON.
[[nodiscard]] std::string quote(std::string_view text);

}  // namespace outbox
