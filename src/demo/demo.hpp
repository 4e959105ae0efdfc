// `outbox demo`: a small shop and its relay, which is killed again and again; then a count of what arrived. README.md shows the
// output.
#pragma once

#include <outbox/error.hpp>

#include "demo/options.hpp"

namespace outbox::demo {

enum class Ending {
  held,         ///< Every promise held, or it was a dual write, which promises nothing.
  broken,       ///< Something was lost, invented or reordered.
  interrupted,  ///< Ctrl-C.
};

/// Prints its progress. Call it from the main thread, before other threads are started.
[[nodiscard]] Result<Ending> run_demo(const DemoOptions& options);

}  // namespace outbox::demo
