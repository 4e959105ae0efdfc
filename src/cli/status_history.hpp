// The part of `outbox status` about what was done before (docs/design/history.md).
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "cli/output.hpp"
#include "history/figures.hpp"

namespace outbox::cli {

/// Reads --since, which may be missing; throws Failure if it is no time.
[[nodiscard]] std::optional<std::chrono::microseconds> parse_since(
    const std::optional<std::string>& since);
/// The length that this share of deliveries does not exceed: a text such as "12ms", "1.9s" or "5m";
/// "-" if there were none.
[[nodiscard]] std::string percentile_text(const history::Figures& figures, double share);
void print_history(const history::History& past);
[[nodiscard]] Json history_to_json(const history::History& past);

}  // namespace outbox::cli
