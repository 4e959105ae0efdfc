#include "cli/health.hpp"

#include <algorithm>

#include "base/units.hpp"

namespace outbox::cli {
namespace {

std::string no_owner(const std::vector<store::RelayRow>& relays) {
  const auto alive =
      std::count_if(relays.begin(), relays.end(), [](const auto& relay) { return relay.alive; });
  if (alive > 0)
    return "nothing is delivered: no live relay has the lanes, " + std::to_string(alive) +
           " wait for them (hint: run this again in a moment, then see their logs)";
  return "nothing is delivered: no relay is alive (hint: outbox relay -c outbox.toml)";
}

std::string stopped(const store::SubscriptionRow& row) {
  return "subscription " + row.spec.name + " is stopped: " + row.reason +
         " (hint: fix the cause, then outbox subscription resume " + row.spec.name + ")";
}

std::string lags(const Health::Line& line, std::chrono::milliseconds max_lag) {
  const std::string trouble = Health::trouble_of(line.row);
  return "subscription " + line.row.spec.name + " lags: its oldest pending event is " +
         age_text(line.progress.lag) + " old, more than " + format_duration(max_lag) +
         (trouble.empty() ? " (hint: outbox status, and the relay's log)" : ": " + trouble);
}

}  // namespace

bool Health::has_owner() const {
  return std::any_of(relays.begin(), relays.end(),
                     [](const auto& relay) { return relay.owner && relay.alive; });
}

std::string Health::trouble_of(const store::SubscriptionRow& row) {
  return row.state == store::SubscriptionState::active ? row.trouble : std::string();
}

std::vector<std::string> Health::problems(std::optional<std::chrono::milliseconds> max_lag) const {
  std::vector<std::string> found;
  if (!has_owner()) found.push_back(no_owner(relays));
  if (subscriptions.empty()) {
    found.emplace_back(
        "no subscriptions: nothing is delivered (hint: outbox subscription apply -c outbox.toml)");
  }
  for (const Line& line : subscriptions) {
    if (line.row.state == store::SubscriptionState::stopped) found.push_back(stopped(line.row));
    if (line.row.state == store::SubscriptionState::active && max_lag &&
        line.progress.lag > *max_lag)
      found.push_back(lags(line, *max_lag));
  }
  return found;
}

std::string age_text(std::chrono::microseconds age) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(age).count();
  if (seconds < 60) return std::to_string(seconds) + "s";
  if (seconds < 60 * 60) return std::to_string(seconds / 60) + "m";
  if (seconds < 48 * 60 * 60) return std::to_string(seconds / 3600) + "h";
  return std::to_string(seconds / 86400) + "d";
}

}  // namespace outbox::cli
