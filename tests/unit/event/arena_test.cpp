#include "event/arena.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory_resource>
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

TEST(Arena, a_text_longer_than_all_before_is_one_piece) {
  Arena arena;
  const std::string text(1'000'000, 'x');
  EXPECT_EQ(write(arena, text), text);
}

/// Counts heap memory of arenas that are constructed during its lifetime.
class CountingHeap final : public std::pmr::memory_resource {
 public:
  CountingHeap() : before_(std::pmr::set_default_resource(this)) {}
  CountingHeap(const CountingHeap&) = delete;
  CountingHeap& operator=(const CountingHeap&) = delete;
  ~CountingHeap() override { std::pmr::set_default_resource(before_); }
  [[nodiscard]] std::size_t taken() const { return taken_; }

 private:
  void* do_allocate(std::size_t size, std::size_t alignment) override {
    taken_ += size;
    return before_->allocate(size, alignment);
  }
  void do_deallocate(void* memory, std::size_t size, std::size_t alignment) override {
    taken_ -= size;
    before_->deallocate(memory, size, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  std::pmr::memory_resource* before_;
  std::size_t taken_{0};
};

TEST(Arena, batches_of_the_usual_size_take_no_memory) {
  const CountingHeap heap;
  Arena arena;
  for (int batch = 0; batch < 3; ++batch) {
    for (int i = 0; i < 1000; ++i) static_cast<void>(arena.allocate(200));
    EXPECT_EQ(heap.taken(), 0U);
    arena.clear();
  }
}

TEST(Arena, clearing_gives_back_what_an_unusual_batch_took) {
  const CountingHeap heap;
  Arena arena;
  static_cast<void>(arena.allocate(std::size_t{20} << 20U));
  static_cast<void>(write(arena, std::string(std::size_t{5} << 20U, 'x')));
  EXPECT_GE(heap.taken(), std::size_t{25} << 20U);
  arena.clear();
  EXPECT_EQ(heap.taken(), 0U);
}

TEST(Arena, a_text_may_be_empty) {
  Arena arena;
  EXPECT_EQ(write(arena, ""), "");
}

}  // namespace
}  // namespace outbox::event
