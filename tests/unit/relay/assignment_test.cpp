// Tests which lanes a relay should have.
#include "relay/assignment.hpp"

#include <gtest/gtest.h>

#include <bit>

namespace outbox::relay {
namespace {

using store::kAllLanes;
using store::LaneMask;

std::vector<EventId> ids(std::size_t count) {
  std::vector<EventId> ids;
  for (std::size_t i = 0; i < count; ++i) ids.push_back(EventId::generate());
  return ids;
}

TEST(Share, all_members_together_have_every_lane_once_in_even_shares) {
  for (std::size_t count = 1; count <= 70; ++count) {
    const auto members = ids(count);
    LaneMask all = 0;
    for (const EventId& member : members) {
      const LaneMask share = compute_share(member, members);
      EXPECT_EQ(all & share, 0U);
      all |= share;
      const auto lanes = static_cast<std::size_t>(std::popcount(share));
      EXPECT_GE(lanes, 64 / count);
      EXPECT_LE(lanes, (64 + count - 1) / count);
    }
    EXPECT_EQ(all, kAllLanes) << count;
  }
}

TEST(Share, the_order_in_which_members_are_named_does_not_matter) {
  auto members = ids(5);
  const LaneMask share = compute_share(members[2], members);
  const EventId self = members[2];
  std::swap(members[0], members[4]);
  std::swap(members[1], members[2]);
  EXPECT_EQ(compute_share(self, members), share);
}

TEST(Share, when_a_member_goes_most_lanes_of_the_others_stay) {
  int moved = 0;
  int all = 0;
  for (int round = 0; round < 50; ++round) {
    const auto before = ids(4);
    const std::vector<EventId> after(before.begin(), before.begin() + 3);
    for (const EventId& member : after) {
      moved += std::popcount(compute_share(member, before) & ~compute_share(member, after));
      all += std::popcount(compute_share(member, before));
    }
  }
  EXPECT_LT(moved, all / 2);
}

class Wanted : public ::testing::Test {
 protected:
  store::Member member(const EventId& id, bool alive = true,
                       std::vector<std::string> groups = {"*"}) {
    return {.id = id, .name = "relay", .groups = std::move(groups), .alive = alive};
  }
  const EventId self_ = EventId::generate();
  const EventId other_ = EventId::generate();
  store::Group group_{.name = "default", .owners = {}};
};

TEST_F(Wanted, alone_it_takes_everything_also_from_the_dead_and_the_removed) {
  EXPECT_EQ(wanted_lanes(self_, group_, std::vector{member(self_)}), kAllLanes);
  group_.owners = {{.owner = other_, .lanes = 0xFF, .generation = 1},
                   {.owner = EventId::generate(), .lanes = 0xFF00, .generation = 1},
                   {.owner = std::nullopt, .lanes = 0xFF0000, .generation = 1}};
  EXPECT_EQ(wanted_lanes(self_, group_, std::vector{member(self_), member(other_, false)}),
            kAllLanes);
}

TEST_F(Wanted, of_its_share_only_what_the_other_has_given_back) {
  const std::vector members{member(self_), member(other_)};
  const LaneMask share = compute_share(self_, {self_, other_});
  group_.owners = {{.owner = other_, .lanes = kAllLanes, .generation = 1}};
  EXPECT_EQ(wanted_lanes(self_, group_, members), 0U);
  EXPECT_TRUE(share_is_short(self_, group_, members));
  EXPECT_EQ(wanted_lanes(other_, group_, members), ~share) << "the other gives back the rest";
  group_.owners = {{.owner = other_, .lanes = ~share, .generation = 2}};
  EXPECT_EQ(wanted_lanes(self_, group_, members), share);
  EXPECT_FALSE(share_is_short(self_, group_, members));
}

TEST_F(Wanted, who_does_not_serve_the_group_gets_none_of_it) {
  group_.name = "custom:mails";
  const std::vector members{member(self_, true, {"*", "custom:mails"}), member(other_)};
  EXPECT_EQ(wanted_lanes(self_, group_, members), kAllLanes);
  group_.name = "heavy";
  const std::vector two{member(self_, true, {"heavy"}), member(other_, true, {"default"})};
  EXPECT_EQ(wanted_lanes(self_, group_, two), kAllLanes);
}

TEST_F(Wanted, a_group_with_one_owner_stays_where_it_is) {
  group_.name = "file:audit";
  group_.one_owner = true;
  const std::vector members{member(self_), member(other_)};
  EXPECT_EQ(wanted_lanes(self_, group_, members), kAllLanes) << "whoever comes first";
  group_.owners = {{.owner = other_, .lanes = kAllLanes, .generation = 1}};
  EXPECT_EQ(wanted_lanes(self_, group_, members), 0U);
  EXPECT_EQ(wanted_lanes(other_, group_, members), kAllLanes);
  EXPECT_EQ(wanted_lanes(self_, group_, std::vector{member(self_), member(other_, false)}),
            kAllLanes);
}

}  // namespace
}  // namespace outbox::relay
