// How a verb that runs until it is stopped ends.
#pragma once

#include <chrono>
#include <functional>
#include <outbox/relay.hpp>
#include <thread>

#include "base/log.hpp"
#include "config/load.hpp"

namespace outbox::cli {

/// Logs what looks wrong in the configuration.
void log_warnings(const config::Loaded& loaded);

/// Returns a thread that ends the process if a stop takes too long, until the thread is joined: a
/// database that hangs must not block a supervisor.
[[nodiscard]] std::jthread limit_stop(std::chrono::milliseconds grace);

/// What people are told when the verb has stopped.
struct LastWords {
  log::Constant drained;
  log::Constant abandoned;
};
/// Stops within the grace period. Returns the exit code.
[[nodiscard]] int stop_in_order(const std::function<StopReport(std::chrono::milliseconds)>& stop,
                                std::chrono::milliseconds grace, const LastWords& words);

}  // namespace outbox::cli
