// The parts of `outbox status` that have a file of their own: as tables, and as JSON.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/output.hpp"
#include "health/queues.hpp"
#include "history/figures.hpp"
#include "store/adoption.hpp"

namespace outbox::cli {

using Adoptions = std::vector<store::AdoptionRow>;
void print_adoptions(const Adoptions& adoptions);
[[nodiscard]] Json adoptions_to_json(const Adoptions& adoptions);

// ---- what was done before (docs/design/history.md)

/// Reads --since, which may be missing; throws Failure if it is no time.
[[nodiscard]] std::optional<std::chrono::microseconds> parse_since(
    const std::optional<std::string>& since);
/// The length that this share of deliveries does not exceed: a text such as "12ms", "1.9s" or "5m";
/// "-" if there were none.
[[nodiscard]] std::string percentile_text(const history::Figures& figures, double share);
void print_history(const history::History& past);
[[nodiscard]] Json history_to_json(const history::History& past);

// ---- queues of tasks and their workers

void print_queues(const health::Queues& view);
[[nodiscard]] Json queues_to_json(const health::Queues& view);
[[nodiscard]] Json workers_to_json(const health::Queues& view);

/// An age in its largest unit: "0s", "12s", "3m", "2h", "5d".
[[nodiscard]] std::string age_text(std::chrono::microseconds age);

}  // namespace outbox::cli
