// Renaming, resetting and dropping a subscription (docs/design/subscriptions.md). For people; relays follow within a second.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "store/part.hpp"
#include "store/store.hpp"

namespace outbox::store {

/// Where a subscription begins anew.
struct NewStart {
  enum class Kind : std::uint8_t { beginning, now, after };
  Kind kind{Kind::beginning};
  std::int64_t after{0};  ///< The events up to this seq are not sent.
};

/// Events of one type, and what a new start does to them.
struct ResetCount {
  std::string aggregate_type;
  std::string event_type;
  std::string headers;      ///< Empty unless they were asked for.
  std::int64_t again{0};    ///< Passed, and sent again if they match.
  std::int64_t skipped{0};  ///< Not passed yet, and never sent.
};

struct ResetPlan {
  std::vector<ResetCount> counts{};
  // Events that were set aside:
  std::int64_t parked_again{0};     ///< Parked now, removed, and sent again from the log.
  std::int64_t corrected_again{0};  ///< Of them those whose copy a person has corrected.
  std::int64_t discarded_again{0};  ///< Discarded before, and sent again.
  std::int64_t parked_kept{0};      ///< They stay parked.
};

struct FormerName {
  std::string name;
  std::string subscription;  ///< What it is called now.
};

/// One thread at a time. Each change is one transaction.
class SubscriptionChanges : public Part {
 public:
  [[nodiscard]] virtual Result<std::vector<FormerName>> former_names() = 0;
  /// Everything that it has stays: position, parked events, ledger, replays.
  [[nodiscard]] virtual Status rename(std::string_view name, std::string_view new_name) = 0;
  /// Changes nothing. `with_headers`: count events with different headers apart.
  [[nodiscard]] virtual Result<ResetPlan> plan_reset(std::string_view name, const NewStart& start,
                                                     bool with_headers) = 0;
  /// Refused while a replay of it is loading or running.
  [[nodiscard]] virtual Status reset(std::string_view name, const NewStart& start) = 0;
  /// With its parked events. Refused as above.
  [[nodiscard]] virtual Status drop(std::string_view name) = 0;
};

[[nodiscard]] Result<std::unique_ptr<SubscriptionChanges>> open_subscription_changes(
    StoreOptions options);

/// What both stores say.
[[nodiscard]] tl::unexpected<Error> replay_runs(std::string_view name);
[[nodiscard]] tl::unexpected<Error> name_taken(std::string_view name);
/// The renamed subscription, if it may have this name.
[[nodiscard]] Result<SubscriptionSpec> renamed_spec(std::string_view name, std::string_view config,
                                                    std::string_view new_name);

}  // namespace outbox::store
