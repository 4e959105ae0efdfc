// What the consumers of a process did, as metrics. Pure.
#pragma once

#include <outbox/consumer.hpp>
#include <vector>

#include "metrics/families.hpp"

namespace outbox::metrics {

void add_consumers(const std::vector<ConsumerReport>& reports, Families& into);
/// Whether none of these hangs in a transaction.
[[nodiscard]] bool live(const std::vector<ConsumerReport>& reports);

}  // namespace outbox::metrics
