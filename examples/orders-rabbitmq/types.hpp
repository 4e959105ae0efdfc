// What an order is made of. Amounts are whole cents: a sum of money is never a floating-point
// number.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace shop {

struct CustomerId {
  std::int64_t value{0};
};
struct OrderId {
  std::int64_t value{0};
};

class Money {
 public:
  /// "12.50" and "EUR". None: not an amount with two digits of cents, or not a currency of three
  /// capital letters.
  static std::optional<Money> parse(std::string_view amount, std::string_view currency) {
    const std::size_t point = amount.find('.');
    if (point == 0 || point == std::string_view::npos || point > 12 || amount.size() != point + 3)
      return std::nullopt;
    std::string digits(amount);
    digits.erase(point, 1);
    const bool numeric =
        std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
    const bool known =
        currency.size() == 3 &&
        std::all_of(currency.begin(), currency.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
    if (!numeric || !known) return std::nullopt;
    return Money(std::stoll(digits), std::string(currency));
  }

  [[nodiscard]] std::int64_t cents() const { return cents_; }
  [[nodiscard]] const std::string& currency() const { return currency_; }

 private:
  Money(std::int64_t cents, std::string currency) : cents_(cents), currency_(std::move(currency)) {}

  std::int64_t cents_{0};
  std::string currency_;
};

}  // namespace shop
