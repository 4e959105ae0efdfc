// The subscriptions in a relay's configuration, compared with those in the store, which are authoritative. The relay that gets the
// lanes applies its configuration; every difference that is not applied is logged once. docs/design/relay.md.
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
  /// Writes the configuration to the store and logs what changes.
  [[nodiscard]] Status apply(store::Catalog& catalog);
  /// Logs new differences. `why` they are not applied.
  void compare(const std::vector<store::SubscriptionRow>& rows, std::string_view why);

 private:
  const std::vector<SubscriptionSpec>& wanted_;
  std::map<std::string, std::string> logged_;  ///< By subscription: the difference logged last.
};

}  // namespace outbox::relay
