// What Kafka says of the topics that a consumer reads.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "base/units.hpp"
#include "sink/kafka/brokers.hpp"
#include "source/kafka/kafka_source.hpp"
#include "subscription/filter.hpp"

namespace outbox::source::kafka {
namespace {

using std::chrono::milliseconds;

std::string find_value(const sink::kafka::TopicConfig& config, std::string_view property) {
  const auto at = config.find(property);
  return at == config.end() ? std::string() : at->second;
}

/// A segment is removed as a whole, when its newest message is older than retention.ms. So its
/// oldest one stays for the time in which the segment was written, too.
Keeping read_keeping(const std::string& topic, const sink::kafka::TopicConfig& config) {
  const std::string policy = find_value(config, "cleanup.policy");
  if (policy.find("delete") == std::string::npos) {
    return {
        .longest = Keeping::kForever,
        .what = fmt::format("topic {} keeps messages without a limit of time (cleanup.policy {})",
                            topic, policy),
        .shorten = "cleanup.policy delete of the topic"};
  }
  const std::int64_t retention = sink::kafka::parse_number(find_value(config, "retention.ms"));
  const std::int64_t segment = sink::kafka::parse_number(find_value(config, "segment.ms"));
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 10'000;
  if (retention < 0 || retention > kMost || segment > kMost) {
    return {.longest = Keeping::kForever,
            .what = fmt::format("topic {} keeps messages without a limit of time (retention.ms {})",
                                topic, retention),
            .shorten = "retention.ms of the topic"};
  }
  const milliseconds longest(retention + segment);
  return {.longest = longest,
          .what = fmt::format("topic {} keeps messages for up to {} (retention.ms and segment.ms)",
                              topic, format_duration(longest)),
          .shorten = "retention.ms or segment.ms of the topic"};
}

void look_at_topic(sink::kafka::Brokers& brokers, const std::string& topic, Inspection& found) {
  found.reads.push_back("topic " + topic);
  if (const auto config = brokers.config(topic)) return found.add(read_keeping(topic, *config));
  if (!found.unasked.empty()) return;  // Once is enough for what a pattern fits.
  found.unasked.push_back({.code = Errc::permission_denied,
                           .remedy = Remedy::fix,
                           .message = "how long topic " + topic + " keeps messages",
                           .hint = "give the user the right DescribeConfigs of the topic",
                           .origin = {}});
}

}  // namespace

Result<Inspection> inspect(const sink::kafka::KafkaSettings& settings, const ConsumerSpec& spec) {
  OUTBOX_TRY(sink::kafka::Conf conf, read_valid(sink::kafka::make_conf, settings));
  sink::kafka::Brokers brokers;
  OUTBOX_TRY(brokers.connect(std::move(conf)));
  OUTBOX_TRY(const auto topics, brokers.topics());
  Inspection found{.broker = settings.brokers};
  for (const std::string& name : spec.read) {
    // Asking for one topic by its name would make it, where the brokers make topics.
    const auto fits = [&](const std::string& topic) {
      return subscription::glob_match(name, topic);
    };
    if (std::none_of(topics.begin(), topics.end(), fits)) {
      found.missing.push_back(
          {fmt::format("topic {} does not exist, or this user may not see it", name),
           "no message of it is received; the consumer waits for it",
           "create it, correct `read`, or give the user the rights Describe and Read"});
    }
    for (const std::string& topic : topics) {
      if (fits(topic)) look_at_topic(brokers, topic, found);
    }
  }
  return found;
}

}  // namespace outbox::source::kafka
