// Which events a subscription wants. Filters are structured values, never SQL text. Pure.
#pragma once

#include <map>
#include <outbox/event.hpp>
#include <outbox/subscription.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace outbox::event {

/// '*' matches any run of characters, '?' one character (of UTF-8); everything else itself, case included.
[[nodiscard]] bool glob_match(std::string_view glob, std::string_view text) noexcept;

class Filter {
 public:
  explicit Filter(const SubscriptionSpec& spec);
  [[nodiscard]] bool matches(const EventView& event) const;
  /// True when every event matches, without looking.
  [[nodiscard]] bool all() const noexcept { return all_; }

 private:
  std::vector<std::string> event_types_;
  std::vector<std::string> aggregate_types_;
  std::map<std::string, std::string> headers_;
  bool all_{true};
};

}  // namespace outbox::event
