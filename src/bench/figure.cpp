#include "bench/figure.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace outbox::bench {
namespace {

std::string number(double value) {
  if (value >= 100) return fmt::format("{:.0f}", value);
  if (value >= 10) return fmt::format("{:.1f}", value);
  return fmt::format("{:.3f}", value);
}

}  // namespace

Figure beside(std::string name, double value, std::string unit, double limit) {
  Figure figure = stated(std::move(name), value, std::move(unit));
  figure.limit = limit;
  figure.ratio = limit > 0 ? value / limit : 0;
  return figure;
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
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Figure& figure : figures) {
    nlohmann::ordered_json one;
    one["name"] = figure.name;
    one["value"] = figure.value;
    one["unit"] = figure.unit;
    one["limit"] = figure.limit ? nlohmann::ordered_json(*figure.limit) : nlohmann::ordered_json();
    one["ratio"] = figure.ratio ? nlohmann::ordered_json(*figure.ratio) : nlohmann::ordered_json();
    one["target"] =
        figure.target.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(figure.target);
    one["ok"] = figure.ok ? nlohmann::ordered_json(*figure.ok) : nlohmann::ordered_json();
    all.push_back(std::move(one));
  }
  out << nlohmann::ordered_json{{"figures", std::move(all)}}.dump(2) << '\n';
}

double median(std::vector<double> values) { return quantile(values, 0.5); }

double quantile(std::vector<double>& values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto at = static_cast<std::size_t>(std::lround(q * static_cast<double>(values.size() - 1)));
  return values[std::min(at, values.size() - 1)];
}

}  // namespace outbox::bench
