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

/// '*' matches any run of characters, '?' one UTF-8 character; everything else itself, case-sensitively.
[[nodiscard]] bool glob_match(std::string_view glob, std::string_view text) noexcept;

/// A task matches only where aggregate_types name its queue in full: a subscription to everything must not get tasks.
class Filter {
 public:
  /// `left_out`: event types of tasks that another subscription delivers.
  explicit Filter(const SubscriptionSpec& spec, std::vector<std::string> left_out = {});
  [[nodiscard]] bool matches(const EventView& event) const;
  /// For each event 1 if it matches, else 0. `kinds`: theirs, if known.
  void mark(std::span<const EventView> events, const event::Kinds& kinds,
            std::vector<std::uint8_t>& marks) const;
  /// True: none of them matches, and that was quick to see.
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
