// The threads of a queue: they run what its sinks have taken, each task as soon as a thread is
// free, the urgent ones first. What they know together, and what becomes of a run, the core
// decides.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "task/runner_core.hpp"

namespace outbox::task {

/// A core and its threads, which start with the first task. A result of more than `result_bytes` is
/// dropped.
/// Lifetime: the threads end with the last reference. That waits a moment for handlers that run;
///           those that do not return keep their
/// threads, and what they use of the core.
[[nodiscard]] std::shared_ptr<RunnerCore> make_runner(std::string queue, RunnerCore::Types types,
                                                      const RunnerCore::Options& options,
                                                      std::size_t result_bytes = std::size_t{64}
                                                                                 << 10U);

}  // namespace outbox::task
