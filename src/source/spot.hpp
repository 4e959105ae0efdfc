// A place in a message that a consumer names: "header:NAME", "json:PATH", "text:TEXT" or "place".
// Pure.
#pragma once

#include <cstdint>
#include <outbox/error.hpp>
#include <string>
#include <string_view>

namespace outbox::source {

/// Where a message has something, if its consumer says so.
struct Spot {
  enum class Kind : std::uint8_t { known, header, json, text, place };
  Kind kind{Kind::known};
  std::string name{};

  /// Parses "header:NAME", "json:PATH", "text:TEXT" or "place"; an empty text is Kind::known.
  [[nodiscard]] static Result<Spot> parse(std::string_view field, std::string_view text);
};

}  // namespace outbox::source
