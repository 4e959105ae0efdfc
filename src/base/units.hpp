// Durations and sizes as people write them: "250us", "50ms", "15s", "5min", "1h", "7d"; "512B",
// "64KiB", "16MiB", "1GiB". Rates likewise: "200/s", "30/min", "1000/h". Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <outbox/error.hpp>
#include <outbox/rate.hpp>
#include <string>
#include <string_view>

namespace outbox {

/// Refuses a number without a unit, except for 0: whether it means seconds would be a guess.
[[nodiscard]] Result<std::chrono::microseconds> parse_duration(std::string_view text);
/// A number without a unit means bytes.
[[nodiscard]] Result<std::size_t> parse_size(std::string_view text);

[[nodiscard]] Result<Rate> parse_rate(std::string_view text);

/// The value in the largest unit that represents it exactly.
[[nodiscard]] std::string format_duration(std::chrono::microseconds value);
[[nodiscard]] std::string format_size(std::size_t bytes);
/// Empty if there is no limit.
[[nodiscard]] std::string format_rate(const Rate& rate);

[[nodiscard]] Status check_rate(const Rate& rate);
/// How often in a second.
[[nodiscard]] double per_second(const Rate& rate);

}  // namespace outbox
