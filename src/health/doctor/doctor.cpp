#include "health/doctor/doctor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/count.hpp"
#include "event/task_queue.hpp"
#include "health/doctor/consumers.hpp"
#include "health/health.hpp"
#include "sink/registry.hpp"
#include "source/registry.hpp"
#include "store/store.hpp"
#include "subscription/spec.hpp"

namespace outbox::health {
namespace {

/// Counting this many pending events is enough to know how far behind a subscription is.
constexpr std::int64_t kPendingLimit = 10'000;
constexpr std::chrono::minutes kMaxLag{5};
constexpr std::string_view kCustom = "custom";

store::StoreOptions store_options(const RelayOptions& relay) {
  return {.url = relay.store_url, .schema = relay.schema, .application = "outbox"};
}

/// Whether workers deliver the subscription.
bool is_of_queue(const SubscriptionSpec& spec) {
  return event::queue_of_subscription(spec.name) || event::is_of_queue(spec);
}

bool are_named(const std::vector<SubscriptionSpec>& specs, const std::string& name) {
  return std::any_of(specs.begin(), specs.end(),
                     [&](const SubscriptionSpec& spec) { return spec.name == name; });
}

}  // namespace

Findings judge_problems(const config::Problems& problems) {
  Findings findings;
  for (const config::Problem& one : problems) {
    findings.add(Severity::error, "configuration", one.path,
                 one.where.empty() ? one.what : one.what + " (" + one.where + ")",
                 "a relay with this configuration does not start", one.hint);
  }
  return findings;
}

Findings judge_configuration(const config::Loaded& loaded) {
  Findings findings;
  for (const std::string& warning : loaded.warnings) {
    findings.add(Severity::warning, "configuration", "", warning,
                 "the setting that was meant has its default", "outbox config show");
  }
  if (!findings.complains("configuration")) {
    findings.ok("configuration",
                (loaded.file.empty() ? "no file" : loaded.file) + ": " +
                    outbox::count("subscription", loaded.config.relay.subscriptions.size()));
  }
  return findings;
}

void judge_difference(const std::vector<SubscriptionSpec>& wanted,
                      const std::vector<store::SubscriptionOverview>& subscriptions,
                      const std::string& file, Findings& findings) {
  if (wanted.empty()) return;
  const std::string apply =
      "outbox subscription apply" + (file.empty() ? "" : " -c " + shell_word(file));
  for (const SubscriptionSpec& spec : wanted) {
    const auto row = std::find_if(subscriptions.begin(), subscriptions.end(),
                                  [&](const auto& one) { return one.row.spec.name == spec.name; });
    if (row == subscriptions.end()) {
      findings.add(Severity::warning, "difference", spec.name,
                   "is in the configuration, but not in the store",
                   "no event is delivered for it, nor kept", apply);
      continue;
    }
    const auto differences = subscription::differences(row->row.spec, spec);
    if (differences.empty()) continue;
    std::string settings;
    for (const auto& one : differences)
      settings.append(settings.empty() ? "" : ", ").append(one.setting);
    findings.add(
        Severity::warning, "difference", spec.name,
        "the configuration and the store differ in " + settings,
        "relays deliver by what is in the store; one that gets its lanes applies its own file",
        apply);
  }
  for (const auto& one : subscriptions) {
    if (are_named(wanted, one.row.spec.name) || is_of_queue(one.row.spec)) continue;
    findings.add(Severity::note, "difference", one.row.spec.name,
                 "is in the store, but not in this configuration",
                 "it is delivered as the store says, and holds history back",
                 "outbox subscription list");
  }
  if (!findings.complains("difference"))
    findings.ok("difference", "the store has the subscriptions of the configuration");
}

Doctor::Doctor(const Patient& patient, std::chrono::milliseconds timeout)
    : patient_(patient),
      until_(std::chrono::steady_clock::now() + timeout),
      last_question_(until_ - timeout / 4) {}

Findings Doctor::examine() {
  const RelayOptions& relay = patient_.loaded.config.relay;
  if (!relay.store_url.empty())
    checks_.start("store", patient_.store.shown,
                  [this](const auto& report) { look_at_store(report); });
  for (const SubscriptionSpec& spec : relay.subscriptions) start_sink(spec);
  for (const ConsumerSpec& spec : patient_.loaded.config.consumers) start_consumer(spec);
  Findings findings = checks_.wait(until_);
  compare_sizes(findings);
  return findings;
}

void Doctor::look_at_store(const Checks::Report& report) {
  const auto options = store_options(patient_.loaded.config.relay);
  const store::Diagnosis diagnosis = store::diagnose(options, last_question_);
  Findings about_store = judge(diagnosis, patient_.store);
  if (diagnosis.postgres && diagnosis.postgres->server && !diagnosis.postgres->server->standby)
    judge_standbys(patient_.loaded.config.relay, *diagnosis.postgres, about_store);
  judge_feed(diagnosis, patient_.loaded.config.relay.feed, patient_.store, about_store);
  report(std::move(about_store));
  note_sizes(diagnosis);
  if (can_be_read(diagnosis)) {
    return checks_.start("subscriptions", "",
                         [this](const auto& later) { look_at_deliveries(later); });
  }
  if (!diagnosis.postgres || !diagnosis.postgres->server || diagnosis.postgres->server->may_read)
    return;
  Findings findings;
  findings.add(
      Severity::note, "subscriptions", "",
      "not checked: relays, pending and parked events, history, the difference to the configuration",
      "this login has not the right to read events",
      fmt::format("GRANT outbox_reader TO {};", identifier(diagnosis.postgres->server->login)));
  report(std::move(findings));
}

void Doctor::look_at_deliveries(const Checks::Report& report) {
  Findings findings;
  const RelayOptions& relay = patient_.loaded.config.relay;
  auto store = store::open_store(store_options(relay));
  const auto seen = store ? health::look_at_deliveries(**store, relay.retention, kPendingLimit)
                          : tl::unexpected(store.error());
  if (!seen) {
    findings.not_checked("subscriptions", seen.error());
    return report(std::move(findings));
  }
  findings = judge(*seen, {.max_lag = kMaxLag, .quota = relay.quota});
  const bool named = patient_.store.options.starts_with(" -c ");
  judge_difference(relay.subscriptions, seen->subscriptions,
                   named ? std::string() : patient_.loaded.file, findings);
  report(std::move(findings));
  for (const auto& one : seen->subscriptions) {
    if (!are_named(relay.subscriptions, one.row.spec.name)) start_sink(one.row.spec);
  }
}

void Doctor::start_sink(const SubscriptionSpec& spec) {
  // The destination of such a subscription is an application or workers, which cannot be inspected.
  if (spec.sink == kCustom || is_of_queue(spec)) return;
  checks_.start("sink", spec.name, [this, spec](const Checks::Report& report) {
    auto inspected = sink::inspect(spec);
    Findings findings;
    judge_sink(spec, inspected, findings);
    report(std::move(findings));
    if (!inspected) return;
    const MutexLock lock(mutex_);
    inspected_.insert_or_assign(spec.name, std::pair(spec, std::move(*inspected)));
  });
}

void Doctor::start_consumer(const ConsumerSpec& spec) {
  checks_.start("consumer", spec.name, [this, spec](const Checks::Report& report) {
    Findings findings;
    judge_consumer(spec, source::inspect(spec), patient_.loaded.config.relay.inbox_retention,
                   findings);
    report(std::move(findings));
  });
}

void Doctor::note_sizes(const store::Diagnosis& diagnosis) {
  const MutexLock lock(mutex_);
  if (diagnosis.sqlite) sizes_.recent = diagnosis.sqlite->recent_payload.value_or(0);
  if (!diagnosis.postgres) return;
  sizes_.recent = diagnosis.postgres->recent_payload.value_or(0);
  if (diagnosis.postgres->log) sizes_.limit = diagnosis.postgres->log->payload_limit;
}

/// Called after all checks: the sizes of the destinations and of the store are known only then.
void Doctor::compare_sizes(Findings& findings) {
  const MutexLock lock(mutex_);
  for (const auto& [name, one] : inspected_)
    judge_message_size(one.first, one.second, sizes_, findings);
}

}  // namespace outbox::health
