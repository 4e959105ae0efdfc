// outbox/prometheus.hpp: the metrics of outbox/metrics.hpp for prometheus-cpp. Your program links
// prometheus-cpp; outbox does not.
//
//   auto outbox_metrics = std::make_shared<outbox::PrometheusMetrics>(
//       [&] { return std::vector{relay->report()}; });
//   exposer.RegisterCollectable(outbox_metrics);
//
// Threads: any; the function is called by the threads that collect.
// Lifetime: what the function refers to must outlive the object. An exposer keeps a weak pointer.
// Errors: none.
#pragma once

#include <prometheus/client_metric.h>
#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>
#include <prometheus/metric_type.h>

#include <functional>
#include <limits>
#include <outbox/metrics.hpp>
#include <string>
#include <utility>
#include <vector>

namespace outbox {

/// The family as prometheus-cpp has it.
[[nodiscard]] inline prometheus::MetricFamily to_prometheus(const MetricFamily& family) {
  prometheus::MetricFamily made;
  made.name = family.name;
  made.help = family.help;
  switch (family.type) {
    case MetricType::counter: made.type = prometheus::MetricType::Counter; break;
    case MetricType::gauge: made.type = prometheus::MetricType::Gauge; break;
    case MetricType::histogram: made.type = prometheus::MetricType::Histogram; break;
  }
  for (const MetricSample& sample : family.samples) {
    prometheus::ClientMetric& one = made.metric.emplace_back();
    for (std::size_t i = 0; i < family.labels.size(); ++i)
      one.label.push_back({std::string(family.labels[i]), sample.labels[i]});
    one.counter.value = sample.value;
    one.gauge.value = sample.value;
    if (family.type != MetricType::histogram) continue;
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < sample.histogram.counts.size(); ++i) {
      count += sample.histogram.counts[i];
      const bool is_last = i == DurationHistogram::bounds.size();
      prometheus::ClientMetric::Bucket bucket;
      bucket.cumulative_count = count;
      bucket.upper_bound =
          is_last ? std::numeric_limits<double>::infinity() : DurationHistogram::bounds[i];
      one.histogram.bucket.push_back(std::move(bucket));
    }
    one.histogram.sample_count = count;
    one.histogram.sample_sum = sample.histogram.seconds;
  }
  return made;
}

class PrometheusMetrics final : public prometheus::Collectable {
 public:
  using Reports = std::function<std::vector<RelayReport>()>;

  explicit PrometheusMetrics(Reports reports) : reports_(std::move(reports)) {}

  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const override {
    std::vector<prometheus::MetricFamily> made;
    for (const MetricFamily& family : collect_metrics(reports_()))
      made.push_back(to_prometheus(family));
    return made;
  }

 private:
  const Reports reports_;
};

}  // namespace outbox
