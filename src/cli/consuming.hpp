// The consumers of the configuration, for the verbs that run them.
#pragma once

#include <memory>
#include <outbox/consumer.hpp>
#include <string>
#include <vector>

#include "config/load.hpp"

namespace outbox::cli {

using ConsumersOfConfig = std::vector<std::unique_ptr<Consumer>>;

/// Makes the consumers of these names, or all. Ends the verb if there is none.
[[nodiscard]] ConsumersOfConfig make_consumers(const config::Loaded& loaded,
                                               const std::vector<std::string>& names);
[[nodiscard]] std::vector<ConsumerReport> consumer_reports(const ConsumersOfConfig& consumers);
/// Stops them all at once.
void stop_consumers(const ConsumersOfConfig& consumers);

}  // namespace outbox::cli
