#include "metrics/families.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace outbox::metrics {
namespace {

std::vector<std::string_view> split_names(std::string_view names) {
  std::vector<std::string_view> all;
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(','), names.size());
    all.push_back(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return all;
}

}  // namespace

void Families::add(metric::Id metric, std::initializer_list<std::string_view> labels,
                   double value) {
  samples_[metric].push_back({.labels = {labels.begin(), labels.end()}, .value = value});
}

void Families::add(metric::Id metric, std::initializer_list<std::string_view> labels,
                   const DurationHistogram& histogram) {
  samples_[metric].push_back({.labels = {labels.begin(), labels.end()}, .histogram = histogram});
}

std::vector<MetricFamily> Families::list() const {
  std::vector<MetricFamily> families;
  for (const auto& [id, samples] : samples_) {
    const Metric& metric = all_metrics()[id];
    families.push_back({.name = metric.name,
                        .help = metric.help,
                        .type = metric.type,
                        .labels = split_names(metric.labels),
                        .samples = samples});
    for (const MetricSample& one : samples)
      OUTBOX_CHECK(one.labels.size() == families.back().labels.size());
  }
  return families;
}

}  // namespace outbox::metrics
