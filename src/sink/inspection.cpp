#include "sink/inspection.hpp"

#include <fmt/format.h>

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

Weakness in_clear(const std::string& hint) {
  return {"no TLS", "events and passwords can be read in the network", hint};
}

}  // namespace outbox::sink
