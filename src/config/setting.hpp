// One setting: what people see of it, and where its value lives.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace outbox::config {

enum class Kind { text, url, choice, boolean, count, size, duration, list, table };

/// "integer", "duration": for help and reference.
[[nodiscard]] std::string_view to_string(Kind kind);

struct Setting {
  std::string path;  ///< "relay.page"; of a subscription: the key alone, "topic".
  Kind kind{Kind::text};
  std::string help;
  std::uint64_t least{0};  ///< Count: as it is; size: bytes; duration: milliseconds.
  std::uint64_t most{0};   ///< 0: no range.
  std::vector<std::string_view> choices{};
  std::string default_note{};  ///< Shown where the default is no fixed value.
  bool required{false};
  bool secret{false};  ///< May hold a password: shown without it.

  [[nodiscard]] std::string_view section() const {
    return std::string_view(path).substr(0, path.find('.'));
  }
  [[nodiscard]] std::string_view key() const {
    return std::string_view(path).substr(path.find('.') + 1);
  }
  /// "OUTBOX_RELAY_PAGE"
  [[nodiscard]] std::string environment() const;
  /// "1 to 10000", "1s to 10min", "text | json"; empty: anything.
  [[nodiscard]] std::string range() const;
};

/// Where a value lives; the alternative fits the setting's kind.
using Slot = std::variant<std::string*, bool*, std::size_t*, std::chrono::milliseconds*,
                          std::vector<std::string>*, std::map<std::string, std::string>*>;

/// A row of the table: a setting of an Owner.
template <class Owner>
struct Row {
  Setting setting;
  Slot (*slot)(Owner&);
};

}  // namespace outbox::config
