#include "health/doctor/consumers.hpp"

#include <fmt/format.h>

#include "base/units.hpp"

namespace outbox::health {
namespace {

constexpr const char* kCheck = "consumer";

void judge_keeping(const ConsumerSpec& spec, const source::Keeping& keeping,
                   std::chrono::milliseconds remembered, Findings& findings) {
  if (keeping.longest <= remembered) return;
  const bool forever = keeping.longest == source::Keeping::kForever;
  const std::string longer =
      forever ? "" : fmt::format("inbox.retention above {}, or ", format_duration(keeping.longest));
  findings.add(Severity::warning, kCheck, spec.name,
               fmt::format("{}, and the inbox remembers them for {} (inbox.retention)",
                           keeping.what, format_duration(remembered)),
               "a message that is read again after its row was removed becomes a task a second "
               "time: so it is when the broker has lost the place of the consumer, or a person "
               "sets it back",
               fmt::format("{}shorten {}", longer, keeping.shorten));
}

}  // namespace

void judge_consumer(const ConsumerSpec& spec, const Result<source::Inspection>& inspected,
                    std::chrono::milliseconds remembered, Findings& findings) {
  if (!inspected) {
    return findings.add(
        Severity::error, kCheck, spec.name, inspected.error().message,
        "no message is received; what is sent waits at the broker for as long as that keeps it",
        inspected.error().hint);
  }
  Findings found;
  for (const sink::Weakness& one : inspected->missing)
    found.add(Severity::error, kCheck, spec.name, one.setting, one.consequence, one.hint);
  for (const sink::Weakness& one : inspected->weaknesses)
    found.add(Severity::warning, kCheck, spec.name, one.setting, one.consequence, one.hint);
  for (const Error& one : inspected->unasked) found.not_checked(kCheck, one, spec.name);
  if (inspected->keeping) judge_keeping(spec, *inspected->keeping, remembered, found);
  if (found.all().empty()) {
    std::string reads;
    for (const std::string& one : inspected->reads) reads += (reads.empty() ? "" : ", ") + one;
    found.add(Severity::ok, kCheck, spec.name,
              fmt::format("{} at {}: {}", spec.source, inspected->broker, reads), "", "");
  }
  findings.append(std::move(found));
}

}  // namespace outbox::health
