// What the relays, workers and consumers of a process did themselves, as metrics. Pure.
#pragma once

#include <chrono>
#include <outbox/consumer.hpp>
#include <outbox/relay.hpp>
#include <string_view>
#include <vector>

#include "metrics/families.hpp"

namespace outbox::metrics {

/// `now` and `now_steady` are one moment, by both clocks.
struct Moment {
  std::chrono::system_clock::time_point now;
  std::chrono::steady_clock::time_point now_steady;
};

/// The main loop counts as hanging after this time without a round. It is longer than any call of
/// the store may last, so that a database that hangs makes no relay restart.
inline constexpr std::chrono::seconds kHangs{90};
/// Whether all of these have started, and none stops.
[[nodiscard]] bool have_started(const std::vector<RelayReport>& reports);
/// Whether no main loop of these hangs.
[[nodiscard]] bool lives(const std::vector<RelayReport>& reports);
/// Whether none of these hangs in a transaction.
[[nodiscard]] bool live(const std::vector<ConsumerReport>& reports);

/// `store`: "postgresql" or "sqlite".
void add_process(std::string_view version, std::string_view store, Families& into);
/// Adds the relays and workers of a process. The one that has not gone round for longest says when
/// the process last did.
void add_relays(const std::vector<RelayReport>& reports, const Moment& moment, Families& into);
void add_consumers(const std::vector<ConsumerReport>& reports, Families& into);

}  // namespace outbox::metrics
