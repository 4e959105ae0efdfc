// Selects the events of a subscription. Filters are structured values, never SQL text. Pure.
#pragma once

#include <map>
#include <outbox/event.hpp>
#include <outbox/subscription.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace outbox::event {

/// '*' matches any run of characters, '?' one UTF-8 character; everything else itself, case-sensitively.
[[nodiscard]] bool glob_match(std::string_view glob, std::string_view text) noexcept;

/// A task matches only where aggregate_types name its queue in full: a subscription to everything must not get tasks.
class Filter {
 public:
  explicit Filter(const SubscriptionSpec& spec);
  [[nodiscard]] bool matches(const EventView& event) const;

 private:
  [[nodiscard]] bool matches_type(const EventView& event) const;

  std::vector<std::string> event_types_;
  std::vector<std::string> aggregate_types_;
  std::map<std::string, std::string> headers_;
  std::vector<std::string> queues_;  ///< The aggregate types of tasks.
};

}  // namespace outbox::event
