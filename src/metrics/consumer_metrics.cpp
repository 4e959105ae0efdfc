#include "metrics/consumer_metrics.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "metrics/relay_metrics.hpp"

namespace outbox::metrics {
namespace {

constexpr std::array<std::string_view, 4> kConsumerStates{"connecting", "reading", "paused",
                                                          "stopped"};

}  // namespace

void add_consumers(const std::vector<ConsumerReport>& reports, Families& into) {
  for (const ConsumerReport& one : reports) {
    const auto add = [&](std::string_view outcome, std::uint64_t messages) {
      into.add(metric::kMessagesReceived, {one.name, outcome}, static_cast<double>(messages));
    };
    add("new", one.received_new);
    add("duplicate", one.duplicates);
    add("unreadable", one.unreadable);
    add("older", one.older);
    const std::string_view state = kConsumerStates.at(static_cast<std::size_t>(one.state));
    for (const std::string_view each : kConsumerStates)
      into.add(metric::kConsumerState, {one.name, each}, each == state ? 1 : 0);
    if (one.lag) into.add(metric::kConsumerLag, {one.name}, static_cast<double>(*one.lag));
  }
}

bool live(const std::vector<ConsumerReport>& reports) {
  return std::ranges::all_of(reports,
                             [](const ConsumerReport& report) { return report.silent < kHangs; });
}

}  // namespace outbox::metrics
