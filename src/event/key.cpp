#include "event/key.hpp"

#include <cstddef>
#include <cstring>

#include "base/hash.hpp"

namespace outbox::event {
namespace {

/// Mixes in 8 bytes by a bijection of the state, so no input is lost before the final mixing.
std::uint64_t absorb(std::uint64_t state, std::uint64_t word) noexcept {
  state = (state ^ word) * 0x9e3779b97f4a7c15ULL;
  return state ^ (state >> 32U);
}

/// Mixes in the length first, so that ("ab", "c") and ("a", "bc") differ. Byte order does not
/// matter, because these hashes never leave the process.
std::uint64_t absorb_text(std::uint64_t state, std::string_view text) noexcept {
  state = absorb(state, text.size());
  const char* at = text.data();
  std::size_t left = text.size();
  for (; left >= 8; at += 8, left -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    state = absorb(state, word);
  }
  if (left == 0) return state;
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < left; ++i) word = word << 8U | static_cast<unsigned char>(at[i]);
  return absorb(state, word);
}

std::uint64_t big_endian(const std::uint8_t* bytes) noexcept {
  std::uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8U | bytes[i];
  return value;
}

}  // namespace

std::uint64_t key_hash(std::string_view aggregate_type, std::string_view aggregate_id) noexcept {
  if (aggregate_id.empty()) return 0;
  const std::uint64_t hash = splitmix64(absorb_text(absorb_text(0, aggregate_type), aggregate_id));
  return hash == 0 ? 1 : hash;
}

std::uint64_t id_hash(const EventId& id) noexcept {
  return splitmix64(big_endian(id.bytes.data()) ^ splitmix64(big_endian(id.bytes.data() + 8)));
}

}  // namespace outbox::event
