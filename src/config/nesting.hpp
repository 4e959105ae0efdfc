// How deep a TOML text goes, found out before it is parsed: the parser makes a table for each part of a key, and a tree that
// is too deep ends the process when it is walked or freed. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "config/problem.hpp"

namespace outbox::config {

/// Parts of one key. The deepest setting there is has five.
inline constexpr std::size_t kMostKeyParts = 32;

/// Where a key has more.
[[nodiscard]] std::optional<Position> too_many_key_parts(std::string_view toml);

}  // namespace outbox::config
