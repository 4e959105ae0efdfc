#include "health/doctor/sinks.hpp"

#include <fmt/format.h>

namespace outbox::health {
namespace {

/// What becomes of an event that the destination rejects for its size.
const char* fate_of_rejected(const SubscriptionSpec& spec) {
  return spec.on_reject == OnReject::park
             ? "is rejected, and parked"
             : "is rejected, and the subscription stops at it (on_reject = \"stop\")";
}

}  // namespace

void judge_sink(const SubscriptionSpec& spec, const Result<sink::Inspection>& inspected,
                Findings& findings) {
  if (!inspected) {
    return findings.add(Severity::error, "sink", spec.name, inspected.error().message,
                        "its events stay pending until the destination can be used; none is lost",
                        inspected.error().hint);
  }
  for (const sink::Weakness& one : inspected->weaknesses)
    findings.add(Severity::warning, "sink", spec.name, one.setting, one.consequence, one.hint);
  if (!inspected->weaknesses.empty()) return;
  findings.add(Severity::ok, "sink", spec.name,
               fmt::format("{} to {}", spec.sink, inspected->destination), "", "");
}

void judge_message_size(const SubscriptionSpec& spec, const sink::Inspection& inspection,
                        const PayloadSizes& sizes, Findings& findings) {
  if (!inspection.largest) return;
  const auto& [setting, bytes, hint] = *inspection.largest;
  const std::string takes = fmt::format("{} is {}", setting, about_bytes(bytes));
  if (sizes.recent > bytes) {
    findings.add(
        Severity::warning, "sink", spec.name,
        fmt::format("{}, and a payload of the newest events has {}", takes,
                    about_bytes(sizes.recent)),
        fmt::format("such an event {}, if the subscription wants it", fate_of_rejected(spec)),
        hint);
  } else if (sizes.limit > bytes) {
    findings.add(
        Severity::warning, "sink", spec.name,
        fmt::format("{}, and the store takes payloads of {}", takes, about_bytes(sizes.limit)),
        fmt::format("a larger event {}", fate_of_rejected(spec)), hint);
  }
  if (!inspection.own || inspection.own->bytes <= bytes) return;
  findings.add(Severity::warning, "sink", spec.name,
               fmt::format("{} is {}, and {}", inspection.own->setting,
                           about_bytes(inspection.own->bytes), takes),
               fmt::format("an event between the two {}: the setting promises more than there is",
                           fate_of_rejected(spec)),
               fmt::format("{}, or lower {}", hint, inspection.own->setting));
}

}  // namespace outbox::health
