// Collects the samples of metrics.
#pragma once

#include <initializer_list>
#include <map>
#include <outbox/metrics.hpp>
#include <string_view>
#include <vector>

#include "metrics/metric.hpp"

namespace outbox::metrics {

class Families {
 public:
  /// `labels` are the values of the metric's labels, in their order.
  void add(metric::Id metric, std::initializer_list<std::string_view> labels, double value);
  void add(metric::Id metric, std::initializer_list<std::string_view> labels,
           const DurationHistogram& histogram);
  /// The metrics that have samples, in the order of the documentation.
  [[nodiscard]] std::vector<MetricFamily> list() const;

 private:
  std::map<metric::Id, std::vector<MetricSample>> samples_;
};

}  // namespace outbox::metrics
