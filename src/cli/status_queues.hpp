// The part of `outbox status` about queues of tasks and their workers.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/output.hpp"
#include "health/queues.hpp"

namespace outbox::cli {

void print_queues(const health::Queues& view);
[[nodiscard]] Json queues_to_json(const health::Queues& view);
[[nodiscard]] Json workers_to_json(const health::Queues& view);

/// An age in its largest unit: "0s", "12s", "3m", "2h", "5d".
[[nodiscard]] std::string age_text(std::chrono::microseconds age);

}  // namespace outbox::cli
