#include "ops/doctor/doctor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/count.hpp"
#include "event/task_queue.hpp"
#include "ops/doctor/subscriptions.hpp"
#include "sink/registry.hpp"
#include "store/store.hpp"

namespace outbox::ops {
namespace {

/// Enough to know how far behind a subscription is.
constexpr std::int64_t kPendingLimit = 10'000;
constexpr std::chrono::minutes kMaxLag{5};
constexpr std::string_view kCustom = "custom";

store::StoreOptions store_options(const RelayOptions& relay) {
  return {.url = relay.store_url, .schema = relay.schema, .application = "outbox"};
}

/// It is delivered by an application, or by workers.
bool has_no_sink_here(const SubscriptionSpec& spec) {
  return spec.sink == kCustom || event::queue_of_subscription(spec.name) ||
         event::is_of_queue(spec);
}

}  // namespace

Findings judge_problems(const config::Problems& problems) {
  Findings findings;
  for (const config::Problem& one : problems) {
    findings.add({.severity = Severity::error,
                  .check = "configuration",
                  .subject = one.path,
                  .what = one.where.empty() ? one.what : one.what + " (" + one.where + ")",
                  .reason = "a relay with this configuration does not start",
                  .command = one.hint});
  }
  return findings;
}

Findings judge_configuration(const config::Loaded& loaded) {
  Findings findings;
  for (const std::string& warning : loaded.warnings) {
    findings.add({.severity = Severity::warning,
                  .check = "configuration",
                  .subject = {},
                  .what = warning,
                  .reason = "the setting that was meant has its default",
                  .command = "outbox config show"});
  }
  if (!findings.complains("configuration")) {
    findings.ok("configuration",
                (loaded.file.empty() ? "no file" : loaded.file) + ": " +
                    outbox::count("subscription", loaded.config.relay.subscriptions.size()));
  }
  return findings;
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
  Findings findings = checks_.wait(until_);
  compare_sizes(findings);
  return findings;
}

void Doctor::look_at_store(const Checks::Report& report) {
  const auto options = store_options(patient_.loaded.config.relay);
  const store::Diagnosis diagnosis = store::diagnose(options, last_question_);
  report(judge(diagnosis, patient_.store));
  note_sizes(diagnosis);
  if (can_be_read(diagnosis)) {
    return checks_.start("subscriptions", "",
                         [this](const auto& later) { look_at_deliveries(later); });
  }
  if (!diagnosis.postgres || !diagnosis.postgres->server || diagnosis.postgres->server->may_read)
    return;
  Findings findings;
  findings.add(
      {.severity = Severity::note,
       .check = "subscriptions",
       .subject = {},
       .what =
           "not checked: relays, pending and parked events, history, the difference to the configuration",
       .reason = "this login has not the right to read events",
       .command = fmt::format("GRANT outbox_reader TO {};",
                              identifier(diagnosis.postgres->server->login))});
  report(std::move(findings));
}

void Doctor::look_at_deliveries(const Checks::Report& report) {
  Findings findings;
  const RelayOptions& relay = patient_.loaded.config.relay;
  auto store = store::open_store(store_options(relay));
  auto catalog = store ? (*store)->catalog() : tl::unexpected(store.error());
  auto rows = catalog ? (*catalog)->overview(kPendingLimit) : tl::unexpected(catalog.error());
  if (!rows) {
    findings.not_checked("subscriptions", rows.error());
    return report(std::move(findings));
  }
  judge_subscriptions(*rows, kMaxLag, findings);
  judge_difference(relay.subscriptions, *rows, patient_.loaded.file, findings);
  if (const auto relays = (*catalog)->relays()) {
    judge_relays(*relays, *rows, findings);
  } else {
    findings.not_checked("relays", relays.error());
  }
  report(std::exchange(findings, {}));
  for (const auto& one : *rows) {
    const bool named =
        std::any_of(relay.subscriptions.begin(), relay.subscriptions.end(),
                    [&](const auto& spec) { return spec.name == one.row.spec.name; });
    if (!named) start_sink(one.row.spec);
  }
  auto retention = (*store)->retention();
  auto pieces =
      retention ? (*retention)->survey(relay.retention) : tl::unexpected(retention.error());
  if (pieces) {
    judge_history(store::holds_of(*pieces), *rows, relay.quota, findings);
  } else {
    findings.not_checked("history", pieces.error());
  }
  report(std::move(findings));
}

void Doctor::start_sink(const SubscriptionSpec& spec) {
  if (has_no_sink_here(spec)) return;
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

void Doctor::note_sizes(const store::Diagnosis& diagnosis) {
  const MutexLock lock(mutex_);
  if (diagnosis.sqlite) sizes_.recent = diagnosis.sqlite->recent_payload.value_or(0);
  if (!diagnosis.postgres) return;
  sizes_.recent = diagnosis.postgres->recent_payload.value_or(0);
  if (diagnosis.postgres->log) sizes_.limit = diagnosis.postgres->log->payload_limit;
}

/// Once both the destinations and the store have answered.
void Doctor::compare_sizes(Findings& findings) {
  const MutexLock lock(mutex_);
  for (const auto& [name, one] : inspected_)
    judge_message_size(one.first, one.second, sizes_, findings);
}

}  // namespace outbox::ops
