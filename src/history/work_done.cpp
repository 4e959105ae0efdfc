#include "history/work_done.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "event/task_queue.hpp"

namespace outbox::history {
namespace {

using TotalsByName = std::map<std::string, const SubscriptionTotals*>;

std::int64_t growth(std::uint64_t now, std::uint64_t before) {
  return now > before ? static_cast<std::int64_t>(now - before) : 0;
}

std::vector<std::int64_t> growth(const DurationHistogram& now, const DurationHistogram& before) {
  std::vector<std::int64_t> counts;
  for (std::size_t i = 0; i < now.counts.size(); ++i)
    counts.push_back(growth(now.counts[i], before.counts[i]));
  while (!counts.empty() && counts.back() == 0) counts.pop_back();
  return counts;
}

/// How many sends were not acked.
std::uint64_t count_unacked(const SendTotals& sends) {
  std::uint64_t all = 0;
  for (const std::uint64_t one : sends.outcomes) all += one;
  return all - sends.count(Outcome::Kind::acked);
}

/// Whether these totals can be those totals later.
bool continues(const SubscriptionTotals& now, const SubscriptionTotals& before) {
  return now.sink == before.sink && now.delivered >= before.delivered &&
         now.filtered >= before.filtered && now.parked >= before.parked && now.dead >= before.dead;
}

/// The earlier totals of this subscription. Those of a new name are the largest that fit of the
/// names that are gone, from which they are removed; a name that is really new has none.
SubscriptionTotals take_earlier(const SubscriptionTotals& now, const TotalsByName& before,
                                TotalsByName& gone) {
  if (const auto same = before.find(now.name); same != before.end()) return *same->second;
  auto found = gone.end();
  for (auto one = gone.begin(); one != gone.end(); ++one) {
    if (!continues(now, *one->second)) continue;
    if (found == gone.end() || one->second->delivered > found->second->delivered) found = one;
  }
  if (found == gone.end()) return {};
  const SubscriptionTotals earlier = *found->second;
  gone.erase(found);
  return earlier;
}

WorkDone subtract(const SubscriptionTotals& now, const SubscriptionTotals& before) {
  WorkDone done{.subscription = now.name};
  done.row.delivered = growth(now.delivered, before.delivered);
  done.row.failed = growth(count_unacked(now.sends), count_unacked(before.sends));
  done.row.parked = growth(now.parked, before.parked);
  done.row.dead = growth(now.dead, before.dead);
  done.row.latency = growth(now.sends.latency, before.sends.latency);
  return done;
}

WorkDone subtract(const TaskTotals& now, const TaskTotals& before) {
  WorkDone done{.subscription = event::subscription_of_queue(now.queue)};
  done.row.type = now.type;
  done.row.delivered = growth(now.completed, before.completed);
  done.row.failed = growth(now.failed, before.failed);
  done.row.dead = growth(now.dead, before.dead);
  done.row.latency = growth(now.duration, before.duration);
  return done;
}

/// Of another type or queue than any before: zeros.
TaskTotals earlier_tasks(const TaskTotals& now, const RelayReport& before) {
  const auto found = std::find_if(
      before.tasks.begin(), before.tasks.end(),
      [&](const TaskTotals& one) { return one.queue == now.queue && one.type == now.type; });
  return found == before.tasks.end() ? TaskTotals{} : *found;
}

}  // namespace

std::vector<WorkDone> work_done(const RelayReport& before, const RelayReport& now) {
  TotalsByName earlier;
  for (const SubscriptionTotals& one : before.totals) earlier[one.name] = &one;
  TotalsByName gone = earlier;
  for (const SubscriptionTotals& one : now.totals) gone.erase(one.name);
  std::vector<WorkDone> all;
  for (const SubscriptionTotals& one : now.totals)
    all.push_back(subtract(one, take_earlier(one, earlier, gone)));
  for (const TaskTotals& one : now.tasks) all.push_back(subtract(one, earlier_tasks(one, before)));
  // One that could not be started has no totals, and yet has pending events.
  for (const SubscriptionReport& one : now.subscriptions) {
    const bool known = std::any_of(now.totals.begin(), now.totals.end(),
                                   [&](const auto& totals) { return totals.name == one.name; });
    if (!known) all.push_back({.subscription = one.name});
  }
  return all;
}

bool may_have_pending(const RelayReport& report) {
  return std::any_of(report.subscriptions.begin(), report.subscriptions.end(),
                     [](const SubscriptionReport& one) {
                       return one.state != "delivering" || !one.reason.empty() || one.in_window > 0;
                     });
}

bool serves_subscription(const RelayReport& report, const std::string& subscription) {
  return std::any_of(report.subscriptions.begin(), report.subscriptions.end(),
                     [&](const SubscriptionReport& one) { return one.name == subscription; });
}

std::int64_t interval_begin(std::int64_t now_us, std::chrono::microseconds length,
                            std::chrono::microseconds interval) {
  const std::int64_t middle = now_us - std::min(length, interval).count() / 2;
  return middle - middle % interval.count();
}

}  // namespace outbox::history
