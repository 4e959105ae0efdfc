#include "event/id.hpp"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <ctime>
#include <functional>
#include <random>

#include "base/error.hpp"
#include "base/text.hpp"

namespace outbox {
namespace {

/// While the clock is set back by at most this, ids still grow. After a larger step they follow the
/// clock, because their time is used to find them.
constexpr std::int64_t kLargestStepBackMs = 10'000;

/// Counts forks in the child, which must not reuse the random state of its parent.
std::atomic<std::uint32_t> fork_count{0};

void watch_forks() {
  static const bool watched = [] {
    ::pthread_atfork(nullptr, nullptr, [] { fork_count.fetch_add(1, std::memory_order_relaxed); });
    return true;
  }();
  static_cast<void>(watched);
}

std::int64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);  // The vDSO serves this without a system call.
  return static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

/// A generator seeded with 256 bits, so that ids of different threads and machines are independent.
std::mt19937_64 seeded() {
  std::random_device device;
  std::array<std::uint32_t, 8> words{};
  std::generate(words.begin(), words.end(), std::ref(device));
  std::seed_seq seed(words.begin(), words.end());
  return std::mt19937_64(seed);
}

/// The ids of one thread (RFC 9562, 6.2, method 2). Within a millisecond the random bits are a
/// counter that grows by random steps, so ids grow and stay hard to guess.
class Generator {
 public:
  Generator() { watch_forks(); }

  EventId next() {
    const std::uint32_t forks = fork_count.load(std::memory_order_relaxed);
    if (forks != forks_) restart(forks);
    advance(now_ms());
    return pack();
  }

 private:
  static constexpr std::uint64_t kLowMask = (std::uint64_t{1} << 62U) - 1;

  void restart(std::uint32_t forks) {
    random_ = seeded();
    forks_ = forks;
    ms_ = 0;
  }

  void advance(std::int64_t now) {
    if (now > ms_ || ms_ - now > kLargestStepBackMs) return begin(now);
    low_ += 1 + (random_() >> 24U);
    if (low_ <= kLowMask) return;
    low_ &= kLowMask;
    if (++high_ > 0xfffU) begin(ms_ + 1);
  }

  /// Begins a millisecond. The zero top bit leaves room for more ids than a millisecond can hold.
  void begin(std::int64_t ms) {
    ms_ = ms;
    high_ = static_cast<std::uint32_t>(random_() >> 53U);
    low_ = random_() & kLowMask;
  }

  [[nodiscard]] EventId pack() const {
    const std::uint64_t hi = (static_cast<std::uint64_t>(ms_) << 16U) | 0x7000U | high_;
    const std::uint64_t lo = (std::uint64_t{1} << 63U) | low_;
    EventId id;
    for (unsigned i = 0; i < 8; ++i) {
      id.bytes[i] = static_cast<std::uint8_t>(hi >> (56U - 8U * i));
      id.bytes[8 + i] = static_cast<std::uint8_t>(lo >> (56U - 8U * i));
    }
    return id;
  }

  std::mt19937_64 random_{seeded()};
  std::int64_t ms_{0};
  std::uint64_t low_{0};
  std::uint32_t high_{0};
  std::uint32_t forks_{fork_count.load(std::memory_order_relaxed)};
};

/// Two hexadecimal characters per byte.
constexpr auto kHexPairs = [] {
  std::array<std::array<char, 2>, 256> pairs{};
  for (std::size_t i = 0; i < pairs.size(); ++i)
    pairs[i] = {kHexDigits[i >> 4U], kHexDigits[i & 15U]};
  return pairs;
}();

constexpr bool dash_at(std::size_t at) { return at == 8 || at == 13 || at == 18 || at == 23; }

}  // namespace

namespace event {

void write_id(const EventId& id, char* to) noexcept {
  for (std::size_t i = 0; i < id.bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) *to++ = '-';
    *to++ = kHexPairs[id.bytes[i]][0];
    *to++ = kHexPairs[id.bytes[i]][1];
  }
}

}  // namespace event

EventId EventId::generate() {
  thread_local Generator generator;
  return generator.next();
}

Result<EventId> EventId::parse(std::string_view text) {
  const auto bad = [] {
    return fail(Errc::invalid_argument, "id: is not a UUID",
                "write it as 36 characters: 8-4-4-4-12 hexadecimal digits");
  };
  if (text.size() != event::kIdChars) return bad();
  EventId id;
  std::size_t nibble = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (dash_at(at)) {
      if (text[at] != '-') return bad();
      continue;
    }
    const int value = hex_value(text[at]);
    if (value < 0) return bad();
    auto& byte = id.bytes[nibble / 2];
    byte = static_cast<std::uint8_t>(unsigned{byte} << 4U | static_cast<unsigned>(value));
    ++nibble;
  }
  return id;
}

std::string EventId::str() const {
  std::string text(event::kIdChars, '\0');
  event::write_id(*this, text.data());
  return text;
}

}  // namespace outbox
