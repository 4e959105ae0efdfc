#include "base/units.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>

#include "base/error.hpp"
#include "base/text.hpp"

namespace outbox {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t size;
};

// The units are in ascending order. Of two spellings format_*() writes the first.
constexpr std::array<Unit, 7> kTimes{{{"us", 1},
                                      {"ms", 1000},
                                      {"s", 1'000'000},
                                      {"min", 60'000'000},
                                      {"m", 60'000'000},
                                      {"h", 3'600'000'000},
                                      {"d", 86'400'000'000}}};
constexpr std::array<Unit, 4> kSizes{
    {{"B", 1}, {"KiB", 1U << 10U}, {"MiB", 1U << 20U}, {"GiB", 1U << 30U}}};

/// The limit prevents overflow of products. No setting allows larger values.
constexpr std::uint64_t kMost = std::uint64_t{1} << 52U;

constexpr std::string_view kTimeHint =
    "a duration is a whole number and a unit: us, ms, s, min, h or d";
constexpr std::string_view kSizeHint = "a size is a whole number and a unit: B, KiB, MiB or GiB";

struct Period {
  std::string_view name;
  std::chrono::seconds length;
};
constexpr std::array<Period, 3> kPeriods{{{"s", std::chrono::seconds(1)},
                                          {"min", std::chrono::minutes(1)},
                                          {"h", std::chrono::hours(1)}}};
constexpr std::size_t kMostInPeriod = 10'000'000;

struct Amount {
  std::uint64_t number{0};
  std::string_view unit;
};

std::optional<Amount> split(std::string_view text) {
  Amount amount;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, amount.number);
  if (error != std::errc() || amount.number > kMost) return std::nullopt;
  amount.unit = std::string_view(stop, static_cast<std::size_t>(end - stop));
  while (amount.unit.starts_with(' ')) amount.unit.remove_prefix(1);
  return amount;
}

std::optional<std::uint64_t> scale(const Amount& amount, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (unit.name != amount.unit) continue;
    if (amount.number > kMost / unit.size) return std::nullopt;
    return amount.number * unit.size;
  }
  return std::nullopt;
}

std::string format(std::uint64_t value, std::span<const Unit> units) {
  Unit best = units.front();
  for (const Unit& unit : units) {
    if (value != 0 && unit.size > best.size && value % unit.size == 0) best = unit;
  }
  return std::to_string(value / best.size).append(best.name);
}

}  // namespace

Result<std::chrono::microseconds> parse_duration(std::string_view text) {
  if (text == "0") return std::chrono::microseconds(0);
  const auto amount = split(text);
  if (amount && amount->unit.empty()) {
    return fail(
        Errc::invalid_argument, "the number " + std::string(text) + " has no unit",
        "write \"" + std::string(text) + "s\" for seconds; units are us, ms, s, min, h and d");
  }
  const auto value = amount ? scale(*amount, kTimes) : std::nullopt;
  if (!value) return fail(Errc::invalid_argument, "not a duration", std::string(kTimeHint));
  return std::chrono::microseconds(static_cast<std::int64_t>(*value));
}

Result<std::size_t> parse_size(std::string_view text) {
  auto amount = split(text);
  if (amount && amount->unit.empty()) amount->unit = "B";
  const auto value = amount ? scale(*amount, kSizes) : std::nullopt;
  if (!value) return fail(Errc::invalid_argument, "not a size", std::string(kSizeHint));
  return static_cast<std::size_t>(*value);
}

Result<Rate> parse_rate(std::string_view text) {
  const auto amount = split(text);
  for (const Period& period : kPeriods) {
    if (!amount || amount->number == 0 || amount->number > kMostInPeriod) break;
    if (amount->unit.starts_with('/') && amount->unit.substr(1) == period.name)
      return Rate{amount->number, period.length};
  }
  return fail(Errc::invalid_argument, in_quotes(text) + " is not a rate",
              "write it like \"200/s\", \"30/min\" or \"1000/h\"");
}

std::string format_duration(std::chrono::microseconds value) {
  const auto shown = static_cast<std::uint64_t>(std::max<std::int64_t>(value.count(), 0));
  return format(shown, std::span(kTimes).subspan(shown % 1000 == 0 ? 1 : 0));
}

std::string format_size(std::size_t bytes) { return format(bytes, kSizes); }

std::string format_rate(const Rate& rate) {
  if (rate.count == 0) return {};
  std::string text = std::to_string(rate.count) + "/";
  for (const Period& period : kPeriods) {
    if (period.length == rate.per) text += period.name;
  }
  return text;
}

Status check_rate(const Rate& rate) {
  if (rate.count > kMostInPeriod)
    return fail(Errc::invalid_argument, "the rate is above 10000000", "0: there is no limit");
  for (const Period& period : kPeriods) {
    if (period.length == rate.per) return {};
  }
  return fail(Errc::invalid_argument, "the rate has another period than 1 s, 1 min or 1 h");
}

double per_second(const Rate& rate) {
  return static_cast<double>(rate.count) / static_cast<double>(rate.per.count());
}

}  // namespace outbox
