#include "bench/figure.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.hpp"

namespace outbox::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kRow = "{:<34} {:>12} {:<14} {:>12} {:>7}  {:<16} {}\n";

/// The value, or null if there is none.
template <class T>
Json make_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

std::string number(double value) {
  if (value >= 100) return fmt::format("{:.0f}", value);
  if (value >= 10) return fmt::format("{:.1f}", value);
  return fmt::format("{:.3f}", value);
}

}  // namespace

Figure& Figure::beside(double measured) {
  limit = measured;
  ratio = measured > 0 ? value / measured : 0;
  return *this;
}

Figure& Figure::aim(std::string at, bool reached) {
  target = std::move(at);
  ok = reached;
  return *this;
}

Figure& Figure::at_least(double least) { return aim("value >= " + number(least), value >= least); }

Figure& Figure::at_most(double most) { return aim("value <= " + number(most), value <= most); }

Figure& Figure::ratio_at_least(double least) {
  return aim(fmt::format("ratio >= {:.2f}", least), ratio.value() >= least);
}

Figure& Figure::ratio_at_most(double most) {
  return aim(fmt::format("ratio <= {:.2f}", most), ratio.value() <= most);
}

Figure& Figure::above_limit_at_most(double more) {
  return aim(fmt::format("limit + {:.0f}", more), value <= limit.value() + more);
}

void print_table(std::ostream& out, const std::vector<Figure>& figures) {
  fmt::print(out, fmt::runtime(kRow), "figure", "value", "unit", "limit", "ratio", "target", "ok");
  for (const Figure& figure : figures) {
    const char* const reached = figure.ok.value_or(false) ? "yes" : "NO";
    fmt::print(out, fmt::runtime(kRow), figure.name, number(figure.value), figure.unit,
               figure.limit ? number(*figure.limit) : "-",
               figure.ratio ? fmt::format("{:.3f}", *figure.ratio) : "-",
               figure.target.empty() ? "-" : figure.target, figure.ok ? reached : "-");
  }
}

void print_json(std::ostream& out, const std::vector<Figure>& figures) {
  Json all = Json::array();
  for (const Figure& figure : figures) {
    all.push_back({{"name", figure.name},
                   {"value", figure.value},
                   {"unit", figure.unit},
                   {"limit", make_json(figure.limit)},
                   {"ratio", make_json(figure.ratio)},
                   {"target", figure.target.empty() ? Json() : Json(figure.target)},
                   {"ok", make_json(figure.ok)}});
  }
  out << write_json(Json{{"figures", std::move(all)}}, {.indent = 2}) << '\n';
}

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(std::lround(q * static_cast<double>(values.size() - 1)))];
}

}  // namespace outbox::bench
