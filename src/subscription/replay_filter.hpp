// Which events of its range and the subscription's filter a replay sends again. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "subscription/filter.hpp"

namespace outbox::subscription {

/// An empty field does not restrict.
struct ReplayChoice {
  std::vector<std::string> event_types{};      ///< Globs, as in a subscription.
  std::vector<std::string> aggregate_types{};  ///< Globs, as in a subscription.
  std::map<std::string, std::string> match_headers{};
  std::string aggregate_type{};  ///< The first part of one key.
  std::string aggregate_id{};
  std::vector<EventId> ids{};
  /// The range of created_at: from `since_us`, before `until_us`. Microseconds since 1970, UTC.
  std::optional<std::int64_t> since_us{};
  std::optional<std::int64_t> until_us{};

  bool operator==(const ReplayChoice&) const = default;
};

[[nodiscard]] std::string to_json(const ReplayChoice& choice);
[[nodiscard]] Result<ReplayChoice> replay_choice_from_json(std::string_view json);

class ReplayFilter {
 public:
  explicit ReplayFilter(const ReplayChoice& choice);
  [[nodiscard]] bool matches(const EventView& event) const;

 private:
  Filter filter_;
  std::string aggregate_type_;
  std::string aggregate_id_;
  std::set<EventId> ids_;
  std::optional<std::int64_t> since_us_;
  std::optional<std::int64_t> until_us_;
};

}  // namespace outbox::subscription
