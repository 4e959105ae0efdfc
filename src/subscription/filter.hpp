// Selects the events of a subscription. Filters are structured values, never SQL text. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <outbox/event.hpp>
#include <outbox/subscription.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "event/kinds.hpp"

namespace outbox::subscription {

/// '*' matches any run of characters, '?' one UTF-8 character, all else itself in the same case.
[[nodiscard]] bool glob_match(std::string_view glob, std::string_view text) noexcept;

/// A task matches only where aggregate_types name its whole queue: "everything" includes no tasks.
class Filter {
 public:
  /// `left_out` has event types of tasks that another subscription delivers.
  explicit Filter(const SubscriptionSpec& spec, std::vector<std::string> left_out = {});
  [[nodiscard]] bool matches(const EventView& event) const;
  /// Marks each event with 1 if it matches, else with 0. `kinds` are those of the events, if known.
  void mark(std::span<const EventView> events, const event::Kinds& kinds,
            std::vector<std::uint8_t>& marks) const;
  /// Whether it is quick to see that no event matches.
  [[nodiscard]] bool surely_none(std::span<const EventView> events,
                                 const event::Kinds& kinds) const;

 private:
  [[nodiscard]] bool matches_kind(const EventView& event) const;
  [[nodiscard]] bool matches_type(const EventView& event) const;

  std::vector<std::string> event_types_;
  std::vector<std::string> aggregate_types_;
  std::map<std::string, std::string> headers_;
  std::vector<std::string> queues_;  ///< The aggregate types of tasks.
  std::vector<std::string> left_out_;
};

}  // namespace outbox::subscription
