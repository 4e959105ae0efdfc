#include "bench/figure.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace outbox::bench {
namespace {

using Json = nlohmann::ordered_json;

/// Null where there is nothing.
template <class T>
Json json_of(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

std::string number(double value) {
  if (value >= 100) return fmt::format("{:.0f}", value);
  if (value >= 10) return fmt::format("{:.1f}", value);
  return fmt::format("{:.3f}", value);
}

}  // namespace

Figure with_limit(Figure figure, double limit) {
  figure.limit = limit;
  figure.ratio = limit > 0 ? figure.value / limit : 0;
  return figure;
}

Figure beside(std::string name, double value, std::string unit, double limit) {
  return with_limit(stated(std::move(name), value, std::move(unit)), limit);
}

Figure at_most_more(std::string name, double value, std::string unit, double limit, double more) {
  Figure figure = beside(std::move(name), value, std::move(unit), limit);
  figure.target = fmt::format("limit + {:.0f}", more);
  figure.ok = value <= limit + more;
  return figure;
}

Figure against(std::string name, double value, std::string unit, double limit, double least) {
  Figure figure = beside(std::move(name), value, std::move(unit), limit);
  figure.target = fmt::format("ratio >= {:.2f}", least);
  figure.ok = *figure.ratio >= least;
  return figure;
}

Figure at_most(std::string name, double value, std::string unit, double most) {
  Figure figure = stated(std::move(name), value, std::move(unit));
  figure.target = fmt::format("value <= {}", number(most));
  figure.ok = value <= most;
  return figure;
}

Figure at_least(std::string name, double value, std::string unit, double least) {
  Figure figure = stated(std::move(name), value, std::move(unit));
  figure.target = fmt::format("value >= {}", number(least));
  figure.ok = value >= least;
  return figure;
}

Figure stated(std::string name, double value, std::string unit) {
  Figure figure;
  figure.name = std::move(name);
  figure.value = value;
  figure.unit = std::move(unit);
  return figure;
}

void print_table(std::ostream& out, const std::vector<Figure>& figures) {
  fmt::print(out, "{:<34} {:>12} {:<14} {:>12} {:>7}  {:<16} {}\n", "figure", "value", "unit",
             "limit", "ratio", "target", "ok");
  for (const Figure& figure : figures) {
    fmt::print(out, "{:<34} {:>12} {:<14} {:>12} {:>7}  {:<16} {}\n", figure.name,
               number(figure.value), figure.unit, figure.limit ? number(*figure.limit) : "-",
               figure.ratio ? fmt::format("{:.3f}", *figure.ratio) : "-",
               figure.target.empty() ? "-" : figure.target,
               !figure.ok   ? "-"
               : *figure.ok ? "yes"
                            : "NO");
  }
}

void print_json(std::ostream& out, const std::vector<Figure>& figures) {
  Json all = Json::array();
  for (const Figure& figure : figures) {
    all.push_back({{"name", figure.name},
                   {"value", figure.value},
                   {"unit", figure.unit},
                   {"limit", json_of(figure.limit)},
                   {"ratio", json_of(figure.ratio)},
                   {"target", figure.target.empty() ? Json() : Json(figure.target)},
                   {"ok", json_of(figure.ok)}});
  }
  out << Json{{"figures", std::move(all)}}.dump(2) << '\n';
}

double median(std::vector<double> values) { return quantile(values, 0.5); }

double quantile(std::vector<double>& values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto at = static_cast<std::size_t>(std::lround(q * static_cast<double>(values.size() - 1)));
  return values[std::min(at, values.size() - 1)];
}

}  // namespace outbox::bench
