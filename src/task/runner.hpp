// The threads of a queue. They run what its sinks have taken, each task as soon as a thread is
// free, the urgent ones first. The core has what they share, and decides what becomes of a run.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "task/runner_core.hpp"

namespace outbox::task {

/// What runs see of their worker.
struct RunnerSettings {
  std::size_t result_bytes{std::size_t{64} << 10U};  ///< A larger result is dropped.
  std::string store_url{};
  std::string schema{};
};

/// Makes a core and its threads, which start with the first task. The threads end with the last
/// reference to the core, which waits a moment for handlers that run. A handler that does not
/// return keeps its thread, and what it uses of the core.
[[nodiscard]] std::shared_ptr<RunnerCore> make_runner(std::string queue, RunnerCore::Types types,
                                                      const RunnerCore::Options& options,
                                                      RunnerSettings settings = {});

}  // namespace outbox::task
