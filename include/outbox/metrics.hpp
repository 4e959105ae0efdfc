// outbox/metrics.hpp: what the relays and workers of your process did, as metrics with the names,
// types and labels of docs/reference/metrics.md. Any library of metrics can take them;
// outbox/prometheus.hpp is the adapter for prometheus-cpp.
//
//   for (const outbox::MetricFamily& family : outbox::collect_metrics({relay->report()}))
//     for (const outbox::MetricSample& sample : family.samples)
//       my_gauge(family.name, family.labels, sample.labels, sample.value);
//
// Threads: any.
// Lifetime: values own what they have; names and texts are constants.
// Errors: none.
#pragma once

#include <cstdint>
#include <outbox/histogram.hpp>
#include <outbox/relay.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace outbox {

enum class MetricType : std::uint8_t { counter, gauge, histogram };
[[nodiscard]] const char* to_string(MetricType type) noexcept;

struct MetricSample {
  std::vector<std::string> labels;  ///< The values of the family's labels, in their order.
  double value{0};                  ///< Of a counter or a gauge.
  DurationHistogram histogram{};    ///< Of a histogram.
};

/// A metric with all its samples.
struct MetricFamily {
  std::string_view name;
  std::string_view help;
  MetricType type{MetricType::gauge};
  std::vector<std::string_view> labels{};  ///< The names of the labels.
  std::vector<MetricSample> samples{};
};

/// The metrics of a process whose relays and workers have made these reports. What the store knows
/// is not among them: `outbox relay`, `outbox work` and `outbox status --json` tell that.
[[nodiscard]] std::vector<MetricFamily> collect_metrics(const std::vector<RelayReport>& reports);

}  // namespace outbox
