// The subscriptions that a relay's configuration names, against those in the store, which count. The relay that has the lanes
// applies its configuration; every difference that was not applied is logged, once. docs/design/relay.md.
#pragma once

#include <map>
#include <outbox/subscription.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.hpp"

namespace outbox::relay {

class Configuration {
 public:
  /// `wanted` must outlive it.
  explicit Configuration(const std::vector<SubscriptionSpec>& wanted) : wanted_(wanted) {}

  [[nodiscard]] bool empty() const { return wanted_.empty(); }
  /// Writes it into the store and logs what changes.
  [[nodiscard]] Status apply(store::Catalog& catalog);
  /// Logs what differs and was not logged before. `why`: it is not applied.
  void compare(const std::vector<store::SubscriptionRow>& rows, std::string_view why);

 private:
  const std::vector<SubscriptionSpec>& wanted_;
  std::map<std::string, std::string>
      logged_;  ///< The difference that was logged last, by subscription.
};

}  // namespace outbox::relay
