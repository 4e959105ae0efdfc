// Compares what the shop's own tables say with what the destination holds. Pure. It knows nothing of the outbox: neither
// its ids nor its sequence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "demo/order.hpp"

namespace outbox::demo {

struct Verdict {
  std::int64_t committed{0};  ///< Orders in the shop's tables.
  std::int64_t delivered{0};  ///< How many of them the destination holds, at least once.
  std::int64_t lost{0};       ///< Committed, and not there.
  std::int64_t ghosts{
      0};  ///< There, and never committed; or not as it was committed; or not to be read.
  std::int64_t out_of_order{0};  ///< First deliveries after a later order of the same customer.
  std::int64_t duplicates{0};    ///< Further deliveries of an order.

  /// Duplicates break no promise.
  [[nodiscard]] bool promises_held() const { return lost == 0 && ghosts == 0 && out_of_order == 0; }
  bool operator==(const Verdict&) const = default;
};

class Checker {
 public:
  explicit Checker(std::vector<Order> committed);

  /// The next message of the destination, in its order (of a partition, where it has several). None: it is not an order.
  void saw(const std::optional<Order>& message);

  [[nodiscard]] bool complete() const { return verdict_.delivered == verdict_.committed; }
  [[nodiscard]] Verdict verdict() const;

 private:
  struct Entry {
    Order order;
    bool delivered{false};
  };
  std::unordered_map<std::string, Entry> committed_;
  std::unordered_set<std::string> ghosts_;
  std::unordered_map<int, std::int64_t> newest_;  ///< Of each customer, among what was delivered.
  Verdict verdict_;
};

}  // namespace outbox::demo
