#include "sink/inspection.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.hpp"

namespace outbox::sink {

std::string guarantee_line(const Inspection& inspection) {
  return fmt::format("acked when {}; twice {}; in order {}", inspection.acked,
                     inspection.duplicates, inspection.order);
}

void WeaknessLog::warn(std::string_view of, const std::vector<Weakness>& weaknesses) {
  for (const Weakness& one : weaknesses) {
    if (!warned_.insert(fmt::format("{} {}", of, one.setting)).second) continue;
    log::warn("sink: a setting weakens what is promised", {{"sink", sink_},
                                                           {"of", std::string(of)},
                                                           {"setting", one.setting},
                                                           {"consequence", one.consequence},
                                                           {"hint", one.hint}});
  }
}

namespace {

constexpr const char* kNoTls = "no TLS";

}  // namespace

bool is_insecure(const std::vector<Weakness>& weaknesses) {
  return std::any_of(weaknesses.begin(), weaknesses.end(), [](const Weakness& one) {
    return one.setting == kNoTls || one.setting == "insecure_tls";
  });
}

Weakness in_clear(const std::string& hint) {
  return {kNoTls, "events and passwords can be read in the network", hint};
}

}  // namespace outbox::sink
