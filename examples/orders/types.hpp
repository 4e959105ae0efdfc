// What an order is made of, as types: an amount cannot be taken for an id, nor cents for euros.
#pragma once

#include <algorithm>
#include <charconv>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace orders {

/// A positive number that is an id of one kind of thing.
template <class Of>
class Id {
 public:
  static std::optional<Id> of(std::int64_t value) {
    return value > 0 ? std::optional(Id(value)) : std::nullopt;
  }
  static std::optional<Id> parse(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return of(value);
  }
  [[nodiscard]] std::int64_t value() const { return value_; }
  [[nodiscard]] std::string text() const { return std::to_string(value_); }
  auto operator<=>(const Id&) const = default;

 private:
  explicit Id(std::int64_t value) : value_(value) {}
  std::int64_t value_;
};

using CustomerId = Id<struct Customer>;
using OrderId = Id<struct Order>;

/// Whole cents of one currency: never a floating-point number.
class Money {
 public:
  /// "12.50" and "EUR". None: no amount with two digits of cents, or no currency of three capital
  /// letters.
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
  /// As it is stored.
  static Money of_cents(std::int64_t cents, std::string currency) {
    return Money(cents, std::move(currency));
  }

  [[nodiscard]] std::int64_t cents() const { return cents_; }
  [[nodiscard]] const std::string& currency() const { return currency_; }
  /// "12.50"
  [[nodiscard]] std::string amount() const {
    const std::string rest = std::to_string(cents_ % 100);
    return std::to_string(cents_ / 100) + (rest.size() == 1 ? ".0" : ".") + rest;
  }
  bool operator==(const Money&) const = default;

 private:
  Money(std::int64_t cents, std::string currency) : cents_(cents), currency_(std::move(currency)) {}
  std::int64_t cents_;
  std::string currency_;
};

}  // namespace orders
