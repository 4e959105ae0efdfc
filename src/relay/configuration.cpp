#include "relay/configuration.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "store/subscriptions.hpp"
#include "subscription/group.hpp"
#include "subscription/spec.hpp"

namespace outbox::relay {
namespace {

const store::SubscriptionRow* find(const std::vector<store::SubscriptionRow>& rows,
                                   const std::string& name) {
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const auto& row) { return row.spec.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

void log_applied(const SubscriptionSpec& spec, const store::SubscriptionRow* before) {
  if (before == nullptr) {
    log::info("subscription created from the configuration", {{"subscription", spec.name}});
    return;
  }
  for (const auto& [setting, was, is] : subscription::differences(before->spec, spec)) {
    log::info("subscription changed by the configuration",
              {{"subscription", spec.name}, {"setting", setting}, {"before", was}, {"after", is}});
  }
}

/// What differs, as text; empty if nothing does.
std::string difference(const SubscriptionSpec& wanted, const store::SubscriptionRow* present) {
  if (present == nullptr) return "it is not in the store";
  std::string text;
  for (const auto& [setting, in_store, in_file] :
       subscription::differences(present->spec, wanted)) {
    text.append(text.empty() ? "" : "; ").append(setting);
    text.append(": store ").append(in_store).append(", configuration ").append(in_file);
  }
  return text;
}

}  // namespace

void Configuration::forget() {
  applied_.clear();
  known_.clear();
}

void Configuration::know(const std::vector<store::SubscriptionRow>& rows) {
  for (const auto& row : rows) known_[row.spec.name] = row.group;
}

std::string Configuration::choose_group(const SubscriptionSpec& spec) const {
  const auto known = known_.find(spec.name);
  return known == known_.end() ? subscription::choose_group(spec)
                               : subscription::choose_group(spec, known->second);
}

std::set<std::string> Configuration::groups() const {
  std::set<std::string> groups;
  for (const SubscriptionSpec& spec : wanted_) groups.insert(choose_group(spec));
  return groups;
}

/// Logs that a subscription has another name in the store. It must not be created under the former
/// name, because all of its events would be delivered again. The other subscriptions are still
/// applied.
void Configuration::log_renamed(const std::string& name, const Error& error) {
  renamed_.insert(name);
  log::warn("configuration names a subscription that was renamed, which is not applied",
            {{"subscription", name}, {"reason", error.text()}});
}

Status Configuration::apply(store::Catalog& catalog, const std::string& group) {
  OUTBOX_TRY(const auto rows, catalog.subscriptions());
  for (const SubscriptionSpec& spec : wanted_) {
    if (choose_group(spec) != group) continue;
    auto changed = catalog.apply(spec);
    renamed_.erase(spec.name);
    if (!changed && store::is_renamed(changed.error())) {
      log_renamed(spec.name, changed.error());
      continue;
    }
    if (!changed) return pass(changed);
    logged_.erase(spec.name);
    if (*changed) log_applied(spec, find(rows, spec.name));
  }
  note_applied(group);
  return {};
}

/// Why a difference is not applied.
const char* Configuration::reason(const SubscriptionSpec& spec, bool is_there) const {
  const std::string group = choose_group(spec);
  if (!subscription::serves(served_, group)) return "this relay does not serve its group";
  if (!is_there && known_.contains(spec.name))
    return "it was renamed or dropped since; the configuration must be changed, too";
  if (!is_applied(group))
    return "another relay has the lanes; it is applied when this one gets some of them";
  return "the store was changed since; a relay applies its configuration when it starts";
}

void Configuration::compare(const std::vector<store::SubscriptionRow>& rows) {
  for (const SubscriptionSpec& spec : wanted_) {
    const store::SubscriptionRow* const row = find(rows, spec.name);
    if (row != nullptr) renamed_.erase(spec.name);
    std::string text = difference(spec, row);
    if (renamed_.contains(spec.name)) continue;
    std::string& logged = logged_[spec.name];
    if (logged == text) continue;
    logged = std::move(text);
    if (logged.empty()) continue;
    log::warn("configuration differs from the store and is not applied",
              {{"subscription", spec.name},
               {"reason", reason(spec, row != nullptr)},
               {"difference", logged}});
  }
  know(rows);
}

}  // namespace outbox::relay
