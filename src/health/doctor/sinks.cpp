#include "health/doctor/sinks.hpp"

#include <fmt/format.h>

namespace outbox::health {

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
    findings.add(Severity::warning, "sink", spec.name,
                 fmt::format("{}, and a payload of the newest events has {}", takes,
                             about_bytes(sizes.recent)),
                 "such an event is rejected, and parked, if the subscription wants it", hint);
  } else if (sizes.limit > bytes) {
    findings.add(
        Severity::warning, "sink", spec.name,
        fmt::format("{}, and the store takes payloads of {}", takes, about_bytes(sizes.limit)),
        "a larger event is rejected, and parked", hint);
  }
  if (!inspection.own || inspection.own->bytes <= bytes) return;
  findings.add(
      Severity::warning, "sink", spec.name,
      fmt::format("{} is {}, and {}", inspection.own->setting, about_bytes(inspection.own->bytes),
                  takes),
      "an event between the two is rejected, and parked: the setting promises more than there is",
      fmt::format("{}, or lower {}", hint, inspection.own->setting));
}

}  // namespace outbox::health
