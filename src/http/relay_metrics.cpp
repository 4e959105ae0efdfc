#include "http/relay_metrics.hpp"

#include <algorithm>
#include <array>

#include "base/steady.hpp"

namespace outbox::http {
namespace {

constexpr std::array<std::string_view, 5> kStates{"delivering", "unavailable", "paused", "stopped",
                                                  "replaying"};

/// The state of a report in the words of the metric.
std::string_view state(const SubscriptionReport& report) {
  if (report.state == "paused" || report.state == "stopped" || report.state == "replaying")
    return report.state;
  const bool unavailable = report.state == "backing-off" || report.state == "broken";
  return unavailable ? "unavailable" : "delivering";
}

double seconds_since_1970(std::chrono::system_clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

}  // namespace

bool have_started(const std::vector<RelayReport>& reports) {
  return std::ranges::none_of(reports, [](const RelayReport& report) {
    return report.progress == std::chrono::steady_clock::time_point::max();
  });
}

bool lives(const std::vector<RelayReport>& reports) {
  return std::ranges::all_of(reports, [now = now_steady()](const RelayReport& report) {
    return now - report.progress < kHangs;
  });
}

void add_process(std::string_view version, std::string_view store, Exposition& into) {
  into.add(metric::kBuildInfo, {version, store}, 1);
}

void add_relays(const std::vector<RelayReport>& reports, const Moment& moment, Exposition& into) {
  auto progress = moment.now_steady;
  for (const RelayReport& report : reports) {
    progress = std::min(progress, report.progress);
    for (const SubscriptionTotals& one : report.totals) {
      into.add(metric::kDelivered, {one.name}, static_cast<double>(one.delivered));
      into.add(metric::kFiltered, {one.name}, static_cast<double>(one.filtered));
      into.add(metric::kDead, {one.name}, static_cast<double>(one.dead));
    }
    for (const SubscriptionReport& one : report.subscriptions) {
      for (const std::string_view each : kStates)
        into.add(metric::kState, {one.name, each}, each == state(one) ? 1 : 0);
    }
  }
  const auto ago = moment.now_steady - progress;
  into.add(metric::kLastPoll, {},
           seconds_since_1970(
               moment.now - std::chrono::duration_cast<std::chrono::system_clock::duration>(ago)));
}

}  // namespace outbox::http
