// The listener of a verb that runs until it is stopped, for those who watch it.
#pragma once

#include <functional>
#include <memory>
#include <outbox/relay.hpp>
#include <vector>

#include "config/load.hpp"
#include "http/monitor.hpp"

namespace outbox::cli {

/// Whether start_monitor() could listen at such an address.
[[nodiscard]] Status check_monitor(const config::Config& config);
/// Listens at http.listen until the result is destroyed; returns null if nothing is to listen.
/// `reports` says how the relays of this process are, and is called by other threads.
[[nodiscard]] std::unique_ptr<http::Monitor> start_monitor(
    const config::Loaded& loaded, std::function<std::vector<RelayReport>()> reports,
    std::function<std::vector<ConsumerReport>()> consumers = {});

}  // namespace outbox::cli
