// How a verb that runs until it is stopped begins and ends.
#pragma once

#include <chrono>
#include <functional>
#include <outbox/relay.hpp>
#include <thread>

#include "base/log.hpp"
#include "base/signals.hpp"
#include "base/supervisor.hpp"
#include "config/load.hpp"

namespace outbox::cli {

/// Logs what looks wrong in the configuration.
void log_warnings(const config::Loaded& loaded);

/// Calls `start` until it succeeds. With `wait` a store that is unavailable is tried again once a
/// second; other errors end the verb. Returns false if a signal comes meanwhile.
[[nodiscard]] bool start_when_possible(bool wait, const Signals& signals,
                                       const Supervisor& supervisor,
                                       const std::function<void()>& start);

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
