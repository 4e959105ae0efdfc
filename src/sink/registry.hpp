// The sinks by name. A new sink is one folder beside this file, one line in registry.cpp and one page in docs/sinks.
#pragma once

#include <map>
#include <memory>
#include <outbox/sink.hpp>
#include <outbox/subscription.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace outbox::sink {

/// One setting of a sink, for validation and docs/reference.
struct SettingInfo {
  std::string name;
  std::string type;           ///< "string", "path", "duration", "integer", "boolean", "choice: a|b"
  std::string default_value;  ///< Empty and `required`: none.
  bool required{false};
  std::string help;
};

struct SinkInfo {
  std::string name;
  std::string help;
  std::vector<SettingInfo> settings;
  bool free_form{false};  ///< Kafka: further librdkafka properties are passed on.
};

[[nodiscard]] const std::vector<SinkInfo>& all_sinks();

/// Checks the settings of the subscription's sink (unknown name: with the nearest known one; wrong type; missing) without
/// opening anything. "custom" passes.
[[nodiscard]] Status check_settings(const SubscriptionSpec& spec);

/// Makes the sink of the subscription; open() has not been called.
[[nodiscard]] Result<std::unique_ptr<Sink>> make_sink(const SubscriptionSpec& spec);

}  // namespace outbox::sink
