// Collects the values of metrics and writes them in Prometheus' text format (version 0.0.4), with
// prometheus-cpp.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "http/metric.hpp"

namespace outbox::http {

class Exposition {
 public:
  /// Adds a value. `labels` are the values of the metric's labels, in their order.
  void add(const Metric& metric, std::initializer_list<std::string_view> labels, double value);
  [[nodiscard]] std::string text() const;

 private:
  struct Value {
    std::vector<std::string> labels;
    double value{0};
  };
  std::map<const Metric*, std::vector<Value>> values_;
};

}  // namespace outbox::http
