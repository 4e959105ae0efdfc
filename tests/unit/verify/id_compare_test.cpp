// Tests how the ids of a log are compared with those of a destination.
#include "verify/id_compare.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace outbox::verify {
namespace {

using Side = IdCompare::Side;

TEST(IdCompare, says_what_is_missing_foreign_and_double) {
  auto ids = IdCompare::create();
  ASSERT_TRUE(ids);
  std::vector<EventId> events;
  for (int i = 0; i < 1000; ++i) events.push_back(EventId::generate());
  const EventId ghost = EventId::generate();
  for (std::size_t i = 0; i < events.size(); ++i) {
    ids->add(events[i], i < 900 ? Side::settled : Side::pending);
    if (i == 7) continue;                      // This event is lost.
    if (i < 950) ids->add_message(events[i]);  // 50 of the unsettled events are there.
  }
  ids->add_message(events[3]);
  ids->add_message(ghost);
  const auto found = ids->compare();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->in_sink, 951);
  EXPECT_EQ(found->duplicates, 1);
  EXPECT_EQ(found->unsettled, 50);
  EXPECT_EQ(found->ghosts, 1);
  EXPECT_EQ(found->some_ghosts, std::vector{ghost});
  EXPECT_EQ(found->missing, 1);
  EXPECT_EQ(found->some_missing, std::vector{events[7]});
}

TEST(IdCompare, what_was_set_aside_need_not_be_there) {
  auto ids = IdCompare::create();
  ASSERT_TRUE(ids);
  const EventId parked = EventId::generate();
  ids->add(parked, Side::settled);
  ids->add(parked, Side::aside);
  const auto found = ids->compare();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->missing, 0);
}

TEST(IdCompare, tells_the_parts_of_a_destination_apart) {
  auto ids = IdCompare::create();
  ASSERT_TRUE(ids);
  const EventId event = EventId::generate();
  const EventId ghost = EventId::generate();
  ids->add(event, Side::settled);
  ids->add_message(event, 0);
  ids->add_message(event, 2);
  ids->add_message(ghost, 2);
  ids->add_message(ghost, 2);
  const auto found = ids->compare();
  ASSERT_TRUE(found);
  ASSERT_EQ(found->parts.size(), 3U);
  EXPECT_EQ(found->parts[0].messages, 1);
  EXPECT_EQ(found->parts[0].known, 1);
  EXPECT_EQ(found->parts[1].messages, 0);
  EXPECT_EQ(found->parts[2].messages, 3);
  EXPECT_EQ(found->parts[2].known, 1);
  ASSERT_EQ(found->ghosts_by_parts.size(), 1U);
  const auto& [parts, ghosts] = *found->ghosts_by_parts.begin();
  EXPECT_EQ(parts, std::vector<std::uint32_t>{2});
  EXPECT_EQ(ghosts.count, 1);
  EXPECT_EQ(ghosts.some, std::vector{ghost});
  EXPECT_EQ(found->duplicates, 1);
}

TEST(IdCompare, names_those_that_are_missing_and_young) {
  auto ids = IdCompare::create();
  ASSERT_TRUE(ids);
  const EventId old = EventId::generate();
  const EventId young = EventId::generate();
  ids->add(old, Side::settled, 999);
  ids->add(young, Side::settled, 1000);
  const auto all = ids->compare();
  const auto found = ids->compare(1000);
  ASSERT_TRUE(all && found);
  EXPECT_EQ(all->young_missing, 2);
  EXPECT_EQ(found->missing, 2);
  EXPECT_EQ(found->young_missing, 1);
  EXPECT_EQ(found->some_missing, std::vector{young});
}

/// While it exists, this process cannot write to files.
class NoFileSpace {
 public:
  NoFileSpace() {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  }
  ~NoFileSpace() {
    (void)::setrlimit(RLIMIT_FSIZE, &before_);
    (void)std::signal(SIGXFSZ, handler_);
  }
  NoFileSpace(const NoFileSpace&) = delete;
  NoFileSpace& operator=(const NoFileSpace&) = delete;
  NoFileSpace(NoFileSpace&&) = delete;
  NoFileSpace& operator=(NoFileSpace&&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int){std::signal(SIGXFSZ, SIG_IGN)};  ///< With SIG_IGN a write fails instead.
};

TEST(IdCompare, says_why_an_id_could_not_be_written) {
  auto ids = IdCompare::create();
  ASSERT_TRUE(ids);
  {
    const NoFileSpace full;
    const EventId event = EventId::generate();
    for (int i = 0; i < 10'000; ++i) ids->add(event, Side::settled);
  }
  errno = 0;  // as after any later call that succeeded
  const auto found = ids->compare();
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find(std::strerror(EFBIG)), std::string::npos)
      << found.error().message;
}

}  // namespace
}  // namespace outbox::verify
