// outbox enqueue --jsonl: events from JSON lines, many per transaction.
#pragma once

#include <cstddef>
#include <string>

#include "cli/context.hpp"

namespace outbox::cli {

struct EnqueueLinesOptions {
  std::string path;  ///< The file; "-" for stdin.
  bool ids{false};
  bool json{false};
  bool progress{false};
};

/// Each batch of lines is one transaction. A bad line ends the verb: nothing of its batch is
/// written, earlier batches are.
[[nodiscard]] int enqueue_lines(const EnqueueLinesOptions& options, store::Store& store);

}  // namespace outbox::cli
