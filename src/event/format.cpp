#include "event/format.hpp"

#include <array>

namespace outbox::event {
namespace {

constexpr std::array<std::string_view, 2> kNames{"raw", "json"};
constexpr std::array<FormatFunction, kNames.size()> kFunctions{format_raw, format_json};

}  // namespace

std::span<const std::string_view> format_names() { return kNames; }

FormatFunction find_format(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return kFunctions[i];
  }
  return nullptr;
}

}  // namespace outbox::event
