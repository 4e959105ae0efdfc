#include "subscription/rate.hpp"

#include <charconv>
#include <cstdint>
#include <system_error>

#include "base/error.hpp"
#include "base/text.hpp"

namespace outbox::subscription {
namespace {

constexpr std::uint64_t kMost = 10'000'000;

/// The unit in seconds; 0 if it is unknown.
double seconds_of(std::string_view unit) {
  if (unit == "s") return 1;
  if (unit == "min") return 60;
  return unit == "h" ? 3600 : 0;
}

}  // namespace

Result<double> parse_rate(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::string_view number = text.substr(0, slash);
  std::uint64_t count = 0;
  const auto [end, wrong] = std::from_chars(number.data(), number.data() + number.size(), count);
  const bool whole = wrong == std::errc() && end == number.data() + number.size();
  const double seconds = slash == std::string_view::npos ? 0 : seconds_of(text.substr(slash + 1));
  if (!whole || count == 0 || count > kMost || seconds == 0)
    return fail(Errc::invalid_argument, in_quotes(text) + " is not a rate",
                "write it like \"200/s\", \"30/min\" or \"1000/h\"");
  return static_cast<double>(count) / seconds;
}

}  // namespace outbox::subscription
