// The subscriptions in a relay's configuration, compared with those in the store, which are
// authoritative. A relay applies the subscriptions of a group once, when it first gets lanes of
// that group. Every difference that is not applied is logged once. docs/design/relay.md.
#pragma once

#include <map>
#include <outbox/subscription.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/store.hpp"

namespace outbox::relay {

class Configuration {
 public:
  /// `wanted` must outlive this object.
  explicit Configuration(const std::vector<SubscriptionSpec>& wanted) : wanted_(wanted) {}

  [[nodiscard]] bool empty() const { return wanted_.empty(); }
  /// Sets the groups that this relay serves (subscription/group.hpp). By default these are all
  /// groups but those of custom sinks.
  void serve(std::vector<std::string> groups) { served_ = std::move(groups); }
  [[nodiscard]] std::set<std::string> groups() const;
  [[nodiscard]] bool is_applied(const std::string& group) const { return applied_.contains(group); }
  void note_applied(const std::string& group) { applied_.insert(group); }
  /// Writes the subscriptions of the group to the store and logs what changes.
  [[nodiscard]] Status apply(store::Catalog& catalog, const std::string& group);
  /// Forgets what was applied, because the relay starts anew and applies everything again.
  void forget();
  /// Remembers the groups of the subscriptions in the store.
  void know(const std::vector<store::SubscriptionRow>& rows);
  /// Logs new differences, and why they are not applied.
  void compare(const std::vector<store::SubscriptionRow>& rows);

 private:
  [[nodiscard]] std::string choose_group(const SubscriptionSpec& spec) const;
  void log_renamed(const std::string& name, const Error& error);
  [[nodiscard]] const char* reason(const SubscriptionSpec& spec, bool is_there) const;

  const std::vector<SubscriptionSpec>& wanted_;
  std::vector<std::string> served_{"*"};
  std::set<std::string> applied_;  ///< The groups whose subscriptions were applied.
  /// The group of each subscription that is or was in the store.
  std::map<std::string, std::string> known_;
  std::set<std::string> renamed_;  ///< Subscriptions that have another name in the store.
  /// The difference of each subscription that was logged last.
  std::map<std::string, std::string> logged_;
};

}  // namespace outbox::relay
