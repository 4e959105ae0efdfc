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
                        std::int64_t payload_limit, Findings& findings) {
  if (!inspection.largest) return;
  const auto& [setting, bytes, hint] = *inspection.largest;
  if (bytes >= payload_limit) return;
  findings.add({.severity = Severity::warning,
                .check = "sink",
                .subject = spec.name,
                .what = fmt::format("{} is {}, and the store takes payloads of {}", setting,
                                    about_bytes(bytes), about_bytes(payload_limit)),
                .reason = "a larger event is rejected by the destination, and parked",
                .command = hint});
}

}  // namespace outbox::ops
