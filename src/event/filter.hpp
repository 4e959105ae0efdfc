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

class Filter {
 public:
  explicit Filter(const SubscriptionSpec& spec);
  [[nodiscard]] bool matches(const EventView& event) const;
  /// True when every event matches.
  [[nodiscard]] bool all() const noexcept { return all_; }

 private:
  std::vector<std::string> event_types_;
  std::vector<std::string> aggregate_types_;
  std::map<std::string, std::string> headers_;
  bool all_{true};
};

}  // namespace outbox::event
