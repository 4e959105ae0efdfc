#include "sink/registry.hpp"

#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sink/file/file_sink.hpp"
#include "sink/kind.hpp"
#include "sink/null/null_sink.hpp"
#include "sink/stdout/stdout_sink.hpp"
#ifdef OUTBOX_WITH_KAFKA
#include "sink/kafka/kafka_sink.hpp"
#endif

namespace outbox::sink {
namespace {

constexpr std::string_view kCustom = "custom";

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      null_kind(),
      stdout_kind(),
      file_kind(),
#ifdef OUTBOX_WITH_KAFKA
      kafka_kind(),
#endif
  };
  return all;
}

tl::unexpected<Error> no_such_sink(const std::string& name) {
#ifndef OUTBOX_WITH_KAFKA
  if (name == "kafka") {
    return fail(Errc::unsupported, "sink \"kafka\": this build of outbox is without Kafka",
                "build with -DOUTBOX_WITH_KAFKA=ON and librdkafka");
  }
#endif
  std::vector<std::string_view> known;
  for (const Kind& kind : kinds()) known.push_back(kind.info.name);
  known.push_back(kCustom);
  return fail(Errc::invalid_argument, "sink: \"" + name + "\" is not known",
              did_you_mean(name, known));
}

Result<const Kind*> find_kind(const std::string& name) {
  const auto found = std::find_if(kinds().begin(), kinds().end(),
                                  [&](const Kind& kind) { return kind.info.name == name; });
  if (found == kinds().end()) return no_such_sink(name);
  return &*found;
}

/// Both steps of reading, so that a sink is never made from settings that were not checked.
Result<Settings> checked_settings(const Kind& kind, const SubscriptionSpec& spec) {
  auto settings = Settings::read(kind.info, spec.sink_settings);
  if (!settings || !kind.check) return settings;
  if (Status checked = kind.check(*settings); !checked) return pass(checked);
  return settings;
}

}  // namespace

const std::vector<SinkInfo>& all_sinks() {
  static const std::vector<SinkInfo> all = [] {
    std::vector<SinkInfo> infos;
    for (const Kind& kind : kinds()) infos.push_back(kind.info);
    return infos;
  }();
  return all;
}

Status check_settings(const SubscriptionSpec& spec) {
  if (spec.sink == kCustom) return {};
  const auto kind = find_kind(spec.sink);
  if (!kind) return tl::unexpected(kind.error());
  const auto settings = checked_settings(**kind, spec);
  return settings ? Status() : Status(tl::unexpected(settings.error()));
}

Result<std::unique_ptr<Sink>> make_sink(const SubscriptionSpec& spec) {
  if (spec.sink == kCustom) {
    return fail(Errc::invalid_argument,
                "subscription \"" + spec.name + "\": its sink comes from the application",
                "pass one with Relay::use() before start()");
  }
  const auto kind = find_kind(spec.sink);
  if (!kind) return tl::unexpected(kind.error());
  const auto settings = checked_settings(**kind, spec);
  if (!settings) return tl::unexpected(settings.error());
  return (*kind)->make(*settings);
}

}  // namespace outbox::sink
