#include "cli/consuming.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "cli/exit.hpp"

namespace outbox::cli {
ConsumersOfConfig make_consumers(const config::Loaded& loaded,
                                 const std::vector<std::string>& names) {
  const auto& all = loaded.config.consumers;
  if (all.empty()) {
    throw Failure(kUsage, "the configuration has no consumers",
                  "[consumer.billing] with source = \"kafka\", read = [\"orders.*\"] and a table "
                  "[consumer.billing.kafka]");
  }
  for (const std::string& name : names) {
    const bool any = std::any_of(all.begin(), all.end(),
                                 [&](const ConsumerSpec& spec) { return spec.name == name; });
    if (any) continue;
    std::vector<std::string_view> known;
    for (const ConsumerSpec& spec : all) known.emplace_back(spec.name);
    throw Failure(
        kUsage, "--consumer " + name + ": there is no [consumer." + name + "]",
        did_you_mean(name, known, "the configuration has [consumer." + all.front().name + "]"));
  }
  ConsumersOfConfig consumers;
  for (const ConsumerSpec& spec : all) {
    if (!names.empty() && std::find(names.begin(), names.end(), spec.name) == names.end()) continue;
    consumers.push_back(must(Consumer::create({.store_url = loaded.config.relay.store_url,
                                               .schema = loaded.config.relay.schema,
                                               .consumer = spec})));
  }
  return consumers;
}

std::vector<ConsumerReport> consumer_reports(const ConsumersOfConfig& consumers) {
  std::vector<ConsumerReport> reports;
  for (const auto& consumer : consumers) reports.push_back(consumer->report());
  return reports;
}

void stop_consumers(const ConsumersOfConfig& consumers) {
  for (const auto& consumer : consumers) consumer->request_stop();
  for (const auto& consumer : consumers) consumer->stop();
}

}  // namespace outbox::cli
