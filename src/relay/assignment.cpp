#include "relay/assignment.hpp"

#include <algorithm>
#include <cstring>

#include "base/hash.hpp"
#include "subscription/group.hpp"

namespace outbox::relay {
namespace {

constexpr unsigned kLanes = 64;

std::uint64_t weight(const EventId& member, unsigned lane) {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  std::memcpy(&high, member.bytes.data(), sizeof high);
  std::memcpy(&low, member.bytes.data() + sizeof high, sizeof low);
  return splitmix64(splitmix64(high ^ splitmix64(low)) ^ lane);
}

const store::Member* find(const std::optional<EventId>& id,
                          std::span<const store::Member> members) {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const store::Member& member) { return member.id == id; });
  return found == members.end() ? nullptr : &*found;
}

bool is_other(const store::OwnedLanes& owned, const EventId& self,
              std::span<const store::Member> members) {
  const store::Member* const owner = find(owned.owner, members);
  return owner != nullptr && owner->id != self && owner->alive;
}

store::LaneMask lanes_of_others(const EventId& self, const store::Group& group,
                                std::span<const store::Member> members) {
  store::LaneMask lanes = 0;
  for (const store::OwnedLanes& owned : group.owners) {
    if (is_other(owned, self, members)) lanes |= owned.lanes;
  }
  return lanes;
}

store::LaneMask full_share(const EventId& self, const store::Group& group,
                           std::span<const store::Member> members) {
  std::vector<EventId> serving{self};
  for (const store::Member& member : members) {
    if (member.id != self && member.alive && subscription::serves(member.groups, group.name))
      serving.push_back(member.id);
  }
  return compute_share(self, std::move(serving));
}

}  // namespace

store::LaneMask compute_share(const EventId& self, std::vector<EventId> members) {
  std::sort(members.begin(), members.end());
  const std::size_t least = kLanes / members.size();
  std::size_t with_one_more = kLanes % members.size();
  std::vector<std::size_t> taken(members.size(), 0);
  store::LaneMask share = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    std::size_t best = members.size();
    for (std::size_t i = 0; i < members.size(); ++i) {
      const bool has_room = taken[i] < least || (taken[i] == least && with_one_more > 0);
      if (!has_room) continue;
      if (best == members.size() || weight(members[i], lane) > weight(members[best], lane))
        best = i;
    }
    if (taken[best]++ == least) --with_one_more;
    if (members[best] == self) share |= store::LaneMask{1} << lane;
  }
  return share;
}

store::LaneMask wanted_lanes(const EventId& self, const store::Group& group,
                             std::span<const store::Member> members) {
  const store::LaneMask others = lanes_of_others(self, group, members);
  if (group.one_owner) return others == 0 ? store::kAllLanes : store::LaneMask{0};
  return full_share(self, group, members) & ~others;
}

bool share_is_short(const EventId& self, const store::Group& group,
                    std::span<const store::Member> members) {
  if (group.one_owner) return false;
  return (full_share(self, group, members) & lanes_of_others(self, group, members)) != 0;
}

std::string other_owner(const EventId& self, const store::Group& group,
                        std::span<const store::Member> members) {
  for (const store::OwnedLanes& owned : group.owners) {
    if (is_other(owned, self, members)) return find(owned.owner, members)->name;
  }
  return {};
}

}  // namespace outbox::relay
