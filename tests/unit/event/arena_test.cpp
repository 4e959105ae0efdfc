#include "event/arena.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace outbox::event {
namespace {

std::string_view write(Arena& arena, std::string_view text) {
  ArenaText out(arena);
  for (const char c : text) out.push_back(c);
  return out.finish();
}

TEST(Arena, growing_leaves_earlier_texts_in_place) {
  Arena arena;
  std::vector<std::string> wanted;
  std::vector<std::string_view> got;
  for (std::size_t i = 0; i < 3000; ++i) {
    wanted.push_back(std::string(i % 997, static_cast<char>('a' + i % 26)));
    got.push_back(write(arena, wanted.back()));
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(got[i], wanted[i]) << i;
}

TEST(Arena, memory_is_aligned_for_pointers) {
  Arena arena;
  for (std::size_t size = 1; size < 50; ++size) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena.allocate(size)) % alignof(void*), 0U);
    static_cast<void>(write(arena, "x"));
  }
}

TEST(Arena, a_text_longer_than_a_chunk_is_one_piece) {
  Arena arena;
  const std::string text(1'000'000, 'x');
  EXPECT_EQ(write(arena, text), text);
}

TEST(Arena, the_second_batch_of_a_size_takes_no_new_memory) {
  Arena arena;
  const auto batch = [&] {
    for (int i = 0; i < 5000; ++i) static_cast<void>(arena.allocate(200));
    return arena.capacity();
  };
  const std::size_t first = batch();
  arena.clear();
  EXPECT_EQ(arena.capacity(), first);
  EXPECT_EQ(batch(), first);
}

TEST(Arena, clearing_gives_back_what_an_unusual_batch_took) {
  Arena arena;
  static_cast<void>(arena.allocate(std::size_t{20} << 20U));
  for (int i = 0; i < 1000; ++i) static_cast<void>(arena.allocate(60'000));
  arena.clear();
  EXPECT_LE(arena.capacity(), std::size_t{4} << 20U);
}

TEST(Arena, an_empty_text_needs_nothing) {
  Arena arena;
  EXPECT_EQ(write(arena, ""), "");
  EXPECT_EQ(arena.capacity(), 0U);
}

}  // namespace
}  // namespace outbox::event
