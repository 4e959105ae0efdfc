// The known word that a mistyped one was probably meant to be. Pure.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace outbox {

/// The known word with the fewest edits (insert, delete, replace, swap of neighbours; case does not count) from `word`; of
/// equals the first. None when even the best one is more than a third of the longer word away: then a suggestion would
/// mislead.
[[nodiscard]] std::optional<std::string_view> nearest(std::string_view word,
                                                      std::span<const std::string_view> known);

}  // namespace outbox
