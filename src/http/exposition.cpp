#include "http/exposition.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>

#include "base/error.hpp"

namespace outbox::http {
namespace {

std::vector<std::string> split_names(std::string_view names) {
  std::vector<std::string> all;
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(','), names.size());
    all.emplace_back(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return all;
}

prometheus::MetricFamily make_family(const Metric& metric) {
  prometheus::MetricFamily family;
  family.name = metric.name;
  family.help = metric.help;
  family.type = metric.type == MetricType::counter ? prometheus::MetricType::Counter
                                                   : prometheus::MetricType::Gauge;
  return family;
}

}  // namespace

void Exposition::add(const Metric& metric, std::initializer_list<std::string_view> labels,
                     double value) {
  values_[&metric].push_back({.labels = {labels.begin(), labels.end()}, .value = value});
}

std::string Exposition::text() const {
  std::vector<prometheus::MetricFamily> families;
  for (const Metric* const metric : all_metrics()) {
    const auto found = values_.find(metric);
    if (found == values_.end()) continue;
    prometheus::MetricFamily& family = families.emplace_back(make_family(*metric));
    const std::vector<std::string> names = split_names(metric->labels);
    for (const Value& one : found->second) {
      OUTBOX_CHECK(one.labels.size() == names.size());
      prometheus::ClientMetric& sample = family.metric.emplace_back();
      for (std::size_t i = 0; i < names.size(); ++i)
        sample.label.push_back({.name = names[i], .value = one.labels[i]});
      sample.counter.value = one.value;
      sample.gauge.value = one.value;
    }
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace outbox::http
