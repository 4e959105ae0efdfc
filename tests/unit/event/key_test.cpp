#include "event/key.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>

namespace outbox::event {
namespace {

TEST(KeyHash, is_zero_only_without_a_key) {
  EXPECT_EQ(key_hash("order", ""), 0U);
  EXPECT_EQ(key_hash("", ""), 0U);
  EXPECT_NE(key_hash("", "1"), 0U);
  EXPECT_NE(key_hash("order", "1"), 0U);
}

TEST(KeyHash, tells_apart_where_type_ends_and_id_begins) {
  EXPECT_NE(key_hash("ab", "c"), key_hash("a", "bc"));
  EXPECT_NE(key_hash("a", std::string("b\0", 2)), key_hash("a", "b"));
  EXPECT_NE(key_hash("12345678", "12345678"), key_hash("1234567812345678", ""));
  EXPECT_NE(key_hash("a", std::string("\0a", 2)), key_hash("a", "a"));
}

TEST(KeyHash, equal_keys_at_different_places_have_equal_hashes) {
  const std::string text = "xorder42";
  EXPECT_EQ(key_hash(std::string_view(text).substr(1, 5), std::string_view(text).substr(6)),
            key_hash("order", "42"));
}

TEST(KeyHash, many_plain_keys_do_not_collide) {
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 300'000; ++i) seen.insert(key_hash("order", std::to_string(i)));
  for (int i = 0; i < 300'000; ++i)
    seen.insert(key_hash("customer", "customer-" + std::to_string(i)));
  EXPECT_EQ(seen.size(), 600'000U);
}

TEST(KeyHash, every_bit_is_used_equally) {
  std::array<int, 64> ones{};
  constexpr int kKeys = 20'000;
  for (int i = 0; i < kKeys; ++i) {
    const std::uint64_t hash = key_hash("order", std::to_string(i));
    for (std::size_t bit = 0; bit < ones.size(); ++bit)
      ones[bit] += static_cast<int>(hash >> bit & 1U);
  }
  for (const int count : ones) EXPECT_NEAR(count, 0.5 * kKeys, 0.05 * kKeys);
}

// Settlements store these hashes: a change breaks the ledger of every installation. The values are
// from an independent implementation.
TEST(IdHash, golden_values_never_change) {
  const auto hash = [](const char* text) { return id_hash(EventId::parse(text).value()); };
  EXPECT_EQ(hash("00000000-0000-0000-0000-000000000000"), 0xa706dd2f4d197e6fULL);
  EXPECT_EQ(hash("018f3b1c-7a2e-7c3d-8e4f-0123456789ab"), 0x49693c02959c0148ULL);
  EXPECT_EQ(hash("ffffffff-ffff-ffff-ffff-ffffffffffff"), 0x6309143e67a47936ULL);
  EXPECT_EQ(hash("00000000-0000-0001-0000-000000000000"), 0x08b4fda8c892b50eULL);
  EXPECT_EQ(hash("00000000-0000-0000-0000-000000000001"), 0x5e41ab087439611eULL);
}

}  // namespace
}  // namespace outbox::event
