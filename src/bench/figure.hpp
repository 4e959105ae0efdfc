// One measured number beside its limit.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace outbox::bench {

struct Figure {
  std::string name;
  double value{0};
  std::string unit;
  std::optional<double> limit;  ///< The same without the outbox, measured in the same run.
  std::optional<double> ratio;  ///< value / limit.
  std::string target;           ///< "ratio >= 0.70", "value <= 2 ms"; empty: none.
  std::optional<bool> ok;       ///< Whether the target holds.
};

/// value / limit must be at least `least`.
[[nodiscard]] Figure against(std::string name, double value, std::string unit, double limit,
                             double least);
/// The same without a target.
[[nodiscard]] Figure beside(std::string name, double value, std::string unit, double limit);
/// value must be at most `more` above its limit.
[[nodiscard]] Figure at_most_more(std::string name, double value, std::string unit, double limit,
                                  double more);
[[nodiscard]] Figure at_most(std::string name, double value, std::string unit, double most);
[[nodiscard]] Figure at_least(std::string name, double value, std::string unit, double least);
/// Without limit and target.
[[nodiscard]] Figure stated(std::string name, double value, std::string unit);

/// The figure with its limit.
[[nodiscard]] Figure with_limit(Figure figure, double limit);

void print_table(std::ostream& out, const std::vector<Figure>& figures);
/// {"figures": [{"name", "value", "unit", "limit", "ratio", "target", "ok"}, ...]}
void print_json(std::ostream& out, const std::vector<Figure>& figures);

[[nodiscard]] double median(std::vector<double> values);
/// q in [0, 1].
[[nodiscard]] double quantile(std::vector<double>& values, double q);

}  // namespace outbox::bench
