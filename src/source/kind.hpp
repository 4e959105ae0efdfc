// A kind of source, as the registry sees it. Its connection has the settings of the sink of the
// same name, so a source declares only which of them do not apply.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <outbox/consumer.hpp>
#include <outbox/error.hpp>
#include <outbox/subscription.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/words.hpp"
#include "sink/kind.hpp"
#include "source/inspection.hpp"
#include "source/source.hpp"

namespace outbox {

template <>
inline constexpr std::array<std::string_view, 2> kWords<ConsumeFrom>{"earliest", "latest"};

}  // namespace outbox

namespace outbox::source {

struct SourceKind {
  std::string name;
  std::string help;
  std::string reads;  ///< What ConsumerSpec::read names: "topics", "queues".
  /// Settings of the sink that say how to send, and so do not apply.
  std::vector<std::string> of_sending;
  /// Makes a source that is not open.
  std::function<Result<std::unique_ptr<Source>>(const ConsumerSpec&)> make;
  /// Connects to the broker and asks it. Reads no message, joins no group, and makes nothing.
  std::function<Result<Inspection>(const ConsumerSpec&)> inspect;
};

/// The settings of the connection.
template <class Settings>
Result<Settings> read_connection(const sink::Declaration<Settings>& sink,
                                 const ConsumerSpec& spec) {
  SubscriptionSpec connection;
  connection.sink = sink.name;
  connection.sink_settings = spec.settings;
  return sink::usable_settings(sink, connection);
}

}  // namespace outbox::source
