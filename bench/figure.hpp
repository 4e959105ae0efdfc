// One measured number beside its limit:
//
//   Figure("drain", 800'000, "events/s").beside(1'000'000).ratio_at_least(0.7)
#pragma once

#include <chrono>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace outbox::bench {

struct Figure {
  Figure(std::string its_name, double its_value, std::string its_unit)
      : name(std::move(its_name)), value(its_value), unit(std::move(its_unit)) {}

  /// Sets the limit.
  Figure& beside(double measured);
  // These set the target.
  Figure& at_least(double least);
  Figure& at_most(double most);
  Figure& ratio_at_least(double least);
  Figure& ratio_at_most(double most);
  /// Sets the target to at most `more` above the limit.
  Figure& above_limit_at_most(double more);

  std::string name;
  double value{0};
  std::string unit;
  std::optional<double> limit;  ///< The figure without the outbox, measured in the same run.
  std::optional<double> ratio;  ///< value / limit.
  std::string target;           ///< "ratio >= 0.70", "value <= 2 ms"; empty if there is none.
  std::optional<bool> ok;       ///< Whether the target holds.

 private:
  Figure& aim(std::string at, bool reached);
};

void print_table(std::ostream& out, const std::vector<Figure>& figures);
/// Prints {"figures": [{"name", "value", "unit", "limit", "ratio", "target", "ok"}, ...]}.
void print_json(std::ostream& out, const std::vector<Figure>& figures);

[[nodiscard]] inline double ms_since(std::chrono::steady_clock::time_point start) {
  const auto now = std::chrono::steady_clock::now();
  return std::chrono::duration<double, std::milli>(now - start).count();
}
[[nodiscard]] double median(std::vector<double> values);
/// `q` is in [0, 1].
[[nodiscard]] double quantile(std::vector<double> values, double q);

}  // namespace outbox::bench
