#include "ops/doctor/sinks.hpp"

#include <fmt/format.h>

namespace outbox::ops {

void judge_sink(const SubscriptionSpec& spec, const Result<sink::Inspection>& inspected,
                Findings& findings) {
  const auto add = [&](Severity severity, std::string what, std::string reason,
                       std::string command) {
    findings.add(
        {severity, "sink", spec.name, std::move(what), std::move(reason), std::move(command)});
  };
  if (!inspected) {
    return add(Severity::error, inspected.error().message,
               "its events stay pending until the destination can be used; none is lost",
               inspected.error().hint);
  }
  for (const sink::Weakness& one : inspected->weaknesses)
    add(Severity::warning, one.setting, one.consequence, one.hint);
  if (!inspected->weaknesses.empty()) return;
  add(Severity::ok, fmt::format("{} to {}", spec.sink, inspected->destination), "", "");
}

void judge_message_size(const SubscriptionSpec& spec, const sink::Inspection& inspection,
                        const PayloadSizes& sizes, Findings& findings) {
  if (!inspection.largest) return;
  const auto& [setting, bytes, hint] = *inspection.largest;
  const auto warn = [&](std::string what, std::string reason, std::string command) {
    findings.add({Severity::warning, "sink", spec.name, std::move(what), std::move(reason),
                  std::move(command)});
  };
  const std::string takes = fmt::format("{} is {}", setting, about_bytes(bytes));
  if (sizes.recent > bytes) {
    warn(fmt::format("{}, and a payload of the newest events has {}", takes,
                     about_bytes(sizes.recent)),
         "such an event is rejected, and parked, if the subscription wants it", hint);
  } else if (sizes.limit > bytes) {
    warn(fmt::format("{}, and the store takes payloads of {}", takes, about_bytes(sizes.limit)),
         "a larger event is rejected, and parked", hint);
  }
  if (!inspection.own || inspection.own->bytes <= bytes) return;
  warn(fmt::format("{} is {}, and {}", inspection.own->setting, about_bytes(inspection.own->bytes),
                   takes),
       "an event between the two is rejected, and parked: the setting promises more than there is",
       fmt::format("{}, or lower {}", hint, inspection.own->setting));
}

}  // namespace outbox::ops
