#include "relay/tenure_core.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"
#include "relay/lease_core.hpp"
#include "subscription/group.hpp"

namespace outbox::relay {
namespace {

using Kind = TenureAction::Kind;

store::LaneMask lanes_of_others(const EventId& relay, const store::Group& group) {
  store::LaneMask lanes = 0;
  for (const store::OwnedLanes& owned : group.owners) {
    if (owned.owner && owned.owner != relay) lanes |= owned.lanes;
  }
  return lanes;
}

/// Whether the error passes by itself, on a sound connection. Delivery need not end because of it.
bool passes(const Error& error) {
  return error.code != Errc::lease_lost &&
         (error.remedy == Remedy::retry_call || error.remedy == Remedy::retry_transaction);
}

}  // namespace

// ---- from one tenure to the next

void TenureCore::start(std::uint64_t seed) {
  seed_ = seed;
  failures_ = 0;
  stopping_ = false;
}

bool TenureCore::replaces_outbox(const std::string& outbox) {
  const std::string before = std::exchange(outbox_, outbox);
  return !before.empty() && before != outbox;
}

void TenureCore::begin_tenure(TimePoint now) {
  for (const auto& [group, holding] : std::exchange(holdings_, {})) held_before_[group] = holding;
  lost_.reset();
  begun_at_.reset();
  rung_ = delivers_ = false;
  look_at_ = update_at_ = maintain_at_ = now;
  part_ = 0;
  next_.clear();
  groups_.clear();
}

TenureCore::BackOff TenureCore::back_off(bool has_settled, TimePoint now) {
  // A tenure that fails at once does not reset the back-off.
  const auto since = std::exchange(begun_at_, {});
  const bool was_sound = has_settled || (since && now - *since >= pace_.sound_tenure);
  failures_ = was_sound ? 1 : failures_ + 1;
  return {.was_sound = was_sound,
          .close_sinks = !trust_.holds(now),
          .pause = backoff(pace_.reconnect, failures_, seed_)};
}

// ---- what has happened

void TenureCore::lose(const Error& error) {
  if (!lost_) lost_ = error;
}

void TenureCore::looked(store::Fleet fleet) {
  fleet_ = std::move(fleet);
  if (fleet_.outbox == outbox_) {
    groups_ = served_groups();
    return;
  }
  // The tables or the file may have been dropped and created again: then the cursors and sequence
  // numbers in memory are void.
  end(fail(Errc::unavailable, Remedy::reconnect,
           "the outbox in the store was replaced by another one",
           "delivery starts again from what is there")
          .value());
}

void TenureCore::changed(const std::optional<store::Holding>& holding) {
  if (!holding) return;  // the next look tries again
  const std::string& group = asked_.group;
  const auto held = holdings_.find(group);
  if (held != holdings_.end() && (held->second.lanes & ~holding->lanes) != 0)
    ask({.kind = Kind::forget_retries, .group = group});
  if (holding->lanes == 0)
    holdings_.erase(group);
  else
    holdings_[group] = *holding;
}

void TenureCore::failed(const Error& error) {
  groups_.clear();
  next_.clear();
  update_ = Update::none;
  short_of_lanes_ = false;
  // The relay keeps the lanes that it has.
  const bool goes_on = look_ == Look::asked ? !holdings_.empty() : delivers_;
  if (!passes(error) || !goes_on) return end(error);
  ask({.kind = Kind::report, .error = error});
}

TenureAction TenureCore::next(TimePoint now) {
  while (next_.empty()) {
    (this->*kRound[part_])(now);
    if (next_.empty()) ++part_;
  }
  asked_ = std::move(next_.front());
  next_.pop_front();
  return asked_;
}

// ---- a round

void TenureCore::begin_round(TimePoint now) {
  if (stopping_) return ask({.kind = Kind::end});
  if (lost_) return end(*lost_);
  round_at_ = now;
  look_ = now >= look_at_ ? Look::due : Look::none;
}

void TenureCore::look(TimePoint /*now*/) {
  if (look_ != Look::due) return;
  look_ = Look::asked;
  held_before_look_ = holdings_;
  short_of_lanes_ = false;
  ask({.kind = Kind::look});
}

void TenureCore::settle_shares(TimePoint /*now*/) {
  while (next_.empty() && !groups_.empty()) {
    const store::Group group = std::move(groups_.front());
    groups_.pop_front();
    settle_share(group);
  }
}

void TenureCore::settle_share(const store::Group& group) {
  if (has_lost_retries(group)) ask({.kind = Kind::forget_retries, .group = group.name});
  if (const auto error = loss(group)) return end(*error);
  short_of_lanes_ = short_of_lanes_ || share_is_short(identity_.id, group, fleet_.members);
  const store::LaneMask wanted = wanted_lanes(identity_.id, group, fleet_.members);
  if (is_up_to_date(group, wanted)) return;
  // Nothing of the group may be delivered while its lanes change.
  if (begun_at_) ask({.kind = Kind::leave, .group = group.name});
  ask({.kind = Kind::change,
       .group = group.name,
       .lanes = wanted,
       .of_others = lanes_of_others(identity_.id, group)});
}

void TenureCore::wait_for_others(TimePoint now) {
  if (look_ != Look::asked) return;
  look_ = Look::settled;
  if (!holdings_.empty()) return;
  TenureAction wait{.kind = Kind::wait};
  if (!std::exchange(said_waiting_, true)) {
    wait.owner.emplace();
    for (const store::Group& group : fleet_.groups) {
      if (wait.owner->empty()) wait.owner = other_owner(identity_.id, group, fleet_.members);
    }
  }
  // Once the relay has begun to deliver, each update compares.
  wait.compares = !begun_at_ && !configuration_.empty() && now >= compare_at_;
  if (wait.compares) compare_at_ = now + pace_.update;
  ask(std::move(wait));
}

void TenureCore::end_look(TimePoint now) {
  if (look_ != Look::none) {
    const bool lacks = short_of_lanes_ || holdings_.empty();
    look_at_ = now + (lacks ? pace_.vacancy_check : pace_.update);
    rung_ = rung_ || holdings_ != held_before_look_;
    look_ = Look::none;
  }
  if (!std::exchange(rung_, false) && round_at_ < update_at_) return;
  update_ = Update::due;
  update_at_ = round_at_ + pace_.update;
}

/// Starts and updates what is delivered from the lanes that this relay has.
void TenureCore::deliver(TimePoint now) {
  if (update_ == Update::none) return;
  if (update_ == Update::asked || (holdings_.empty() && !begun_at_)) {
    update_ = Update::none;
    delivers_ = !holdings_.empty();
    return;
  }
  if (!begun_at_) {
    if (asked_.kind != Kind::begin) return ask({.kind = Kind::begin});
    begun_at_ = now;
  }
  if (const std::string* const group = group_to_apply()) {
    if (trust_.holds(now)) return ask({.kind = Kind::apply, .group = *group});
    return end(lease_lost("the lease is over before the configuration could be applied"));
  }
  update_ = Update::asked;
  if (!holdings_.empty()) said_waiting_ = false;
  ask({.kind = Kind::update});
}

void TenureCore::maintain(TimePoint /*now*/) {
  if (!begun_at_ || round_at_ < maintain_at_) return;
  maintain_at_ = round_at_ + pace_.maintain;
  ask({.kind = Kind::maintain});
}

void TenureCore::sleep(TimePoint /*now*/) {
  part_ = 0;
  const TimePoint until = std::min(look_at_, update_at_);
  ask({.kind = Kind::sleep, .until = begun_at_ ? std::min(until, maintain_at_) : until});
}

// ---- lanes

/// The groups that the relay serves: the default group, those that it was told to serve, and those
/// of the subscriptions in the store and in the configuration.
std::deque<store::Group> TenureCore::served_groups() const {
  std::map<std::string, store::Group> groups;
  std::set<std::string> wanted = configuration_.groups();
  wanted.emplace(subscription::kDefaultGroup);
  wanted.insert(identity_.groups.begin(), identity_.groups.end());
  wanted.erase(std::string(subscription::kAllGroups));
  for (const std::string& name : wanted)
    groups[name] = {.name = name, .one_owner = subscription::has_one_owner(name), .owners = {}};
  for (const store::Group& group : fleet_.groups) {
    if (group.has_subscriptions || wanted.contains(group.name) || holdings_.contains(group.name))
      groups[group.name] = group;
  }
  std::deque<store::Group> served;
  for (auto& [name, group] : groups) {
    if (subscription::serves(identity_.groups, name)) served.push_back(std::move(group));
  }
  return served;
}

/// Whether another relay has had lanes of the tenure before. One that takes lanes over removes this
/// relay's row, without which the change that follows fails. So none can take lanes over unnoticed
/// after this look.
bool TenureCore::has_lost_retries(const store::Group& group) {
  const auto before = held_before_.extract(group.name);
  if (before.empty()) return false;
  store::LaneMask kept = 0;
  for (const store::OwnedLanes& owned : group.owners) {
    if (owned.owner == identity_.id && owned.generation == before.mapped().generation)
      kept |= owned.lanes;
  }
  return (before.mapped().lanes & ~kept) != 0;
}

/// Lanes that the store gives to somebody else are lost, whatever this relay believes.
std::optional<Error> TenureCore::loss(const store::Group& group) const {
  const auto held = holdings_.find(group.name);
  if (held == holdings_.end()) return {};
  for (const store::OwnedLanes& owned : group.owners) {
    const bool ours = owned.owner == identity_.id && owned.generation == held->second.generation;
    if (ours || (owned.lanes & held->second.lanes) == 0) continue;
    const std::string other = other_owner(identity_.id, group, fleet_.members);
    return lease_lost("lanes of group " + group.name + " were taken over" +
                      (other.empty() ? "" : " by " + other));
  }
  return {};
}

bool TenureCore::is_up_to_date(const store::Group& group, store::LaneMask wanted) const {
  const auto held = holdings_.find(group.name);
  if (held == holdings_.end()) return wanted == 0;
  return held->second.lanes == wanted && held->second.generation >= group.least_generation;
}

/// A group with lanes whose configuration was not applied; null if there is none.
const std::string* TenureCore::group_to_apply() const {
  const auto found = std::find_if(holdings_.begin(), holdings_.end(), [&](const auto& one) {
    return !configuration_.is_applied(one.first);
  });
  return found == holdings_.end() ? nullptr : &found->first;
}

}  // namespace outbox::relay
