// What a worker says about itself with each heartbeat: which types it has handlers for, and how long their runs took.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/duration_buckets.hpp"

namespace outbox::store {

struct WorkerNote {
  struct Type {
    std::string queue;
    std::string name;
    DurationCounts runs{};  ///< Of the last minutes; quick ones are estimated from samples.
  };
  std::chrono::milliseconds heartbeat{0};
  std::vector<Type> types{};
};

/// {"heartbeat_ms": 10000, "types": [{"queue": "reports", "type": "report.make", "runs": {"54": 12}}]}
[[nodiscard]] std::string to_json(const WorkerNote& note);
/// What cannot be read is left out: another version may have written it.
[[nodiscard]] WorkerNote worker_note_of(std::string_view json);

}  // namespace outbox::store
