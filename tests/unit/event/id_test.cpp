#include "event/id.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

namespace outbox {
namespace {

std::int64_t read_milliseconds(const EventId& id) {
  std::int64_t ms = 0;
  for (std::size_t i = 0; i < 6; ++i) ms = ms << 8U | id.bytes[i];
  return ms;
}

std::int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

TEST(EventId, is_a_uuid_of_version_7_with_the_present_time) {
  const std::int64_t before = now_ms();
  const EventId id = EventId::generate();
  const std::int64_t after = now_ms();
  EXPECT_EQ(id.bytes[6] >> 4U, 7);
  EXPECT_EQ(id.bytes[8] >> 6U, 2);
  // Assumes that earlier ids of this program have not run ahead of the clock.
  EXPECT_GE(read_milliseconds(id), before);
  EXPECT_LE(read_milliseconds(id), after);
}

TEST(EventId, ids_of_one_thread_grow) {
  EventId last = EventId::generate();
  for (int i = 0; i < 200'000; ++i) {
    const EventId next = EventId::generate();
    ASSERT_LT(last, next);
    last = next;
  }
}

TEST(EventId, threads_never_make_the_same_id) {
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kEach = 20'000;
  std::array<std::vector<EventId>, kThreads> made;
  {
    std::vector<std::jthread> threads;
    threads.reserve(kThreads);
    for (auto& ids : made) {
      threads.emplace_back([&ids] {
        for (std::size_t i = 0; i < kEach; ++i) ids.push_back(EventId::generate());
      });
    }
  }
  std::set<EventId> all;
  for (const auto& ids : made) all.insert(ids.begin(), ids.end());
  EXPECT_EQ(all.size(), kThreads * kEach);
}

/// The random bits below the time and the version.
std::array<std::uint8_t, 8> low_half(const EventId& id) {
  std::array<std::uint8_t, 8> half{};
  std::copy(id.bytes.begin() + 8, id.bytes.end(), half.begin());
  return half;
}

TEST(EventId, a_forked_child_goes_on_with_other_randomness) {
  static_cast<void>(EventId::generate());
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const EventId id = EventId::generate();
    const bool written = ::write(ends[1], id.bytes.data(), id.bytes.size()) == 16;
    ::_exit(written ? 0 : 1);
  }
  const EventId ours = EventId::generate();
  EventId theirs;
  EXPECT_EQ(::read(ends[0], theirs.bytes.data(), theirs.bytes.size()), 16);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_NE(low_half(ours), low_half(theirs));
}

TEST(EventId, text_is_the_canonical_form_and_reads_back) {
  EventId id;
  for (std::size_t i = 0; i < id.bytes.size(); ++i) id.bytes[i] = static_cast<std::uint8_t>(i * 17);
  EXPECT_EQ(id.str(), "00112233-4455-6677-8899-aabbccddeeff");
  EXPECT_EQ(EventId::parse(id.str()), id);
  EXPECT_EQ(EventId::parse("00112233-4455-6677-8899-AABBCCDDEEFF"), id);
}

TEST(EventId, what_is_not_a_uuid_is_refused) {
  for (const char* text :
       {"", "00112233445566778899aabbccddeeff", "00112233-4455-6677-8899-aabbccddeef",
        "00112233-4455-6677-8899-aabbccddeeff0", "00112233-4455-6677-8899-aabbccddeefg",
        "001122334-455-6677-8899-aabbccddeeff", "{0112233-4455-6677-8899-aabbccddeeff}"}) {
    const auto parsed = EventId::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().message, "id: is not a UUID");
  }
}

}  // namespace
}  // namespace outbox
