// What applying a configuration would change about the subscriptions of a store. Pure.
#pragma once

#include <outbox/subscription.hpp>
#include <span>
#include <string>
#include <vector>

#include "store/store.hpp"

namespace outbox::cli {

/// A field as it may be shown: passwords are masked.
struct FieldChange {
  std::string field;
  std::string before;
  std::string after;
};

struct SubscriptionChange {
  enum class Kind { created, changed, unchanged, left_alone };

  Kind kind{Kind::unchanged};
  std::string name;
  std::vector<FieldChange> fields{};
};

[[nodiscard]] const char* to_string(SubscriptionChange::Kind kind) noexcept;

/// Those wanted in their order, then those that only the store has. `written`: those wanted, before references were
/// replaced; what has one is not shown.
[[nodiscard]] std::vector<SubscriptionChange> compare(
    std::span<const store::SubscriptionRow> present, std::span<const SubscriptionSpec> wanted,
    std::span<const SubscriptionSpec> written);

/// The subscription of that name.
[[nodiscard]] const SubscriptionSpec* find(std::span<const SubscriptionSpec> specs,
                                           const std::string& name);

}  // namespace outbox::cli
