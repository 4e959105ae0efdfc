#include "store/sqlite/clock.hpp"

#include <time.h>

#include "event/time_text.hpp"

namespace outbox::store::sqlite {
namespace {

std::int64_t read_us(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000;
}

}  // namespace

std::int64_t wall_us() { return read_us(CLOCK_REALTIME); }
std::int64_t monotonic_us() { return read_us(CLOCK_MONOTONIC); }

std::string time_text(std::int64_t us_since_1970) {
  std::string text(event::kTimeChars, '\0');
  event::write_time(us_since_1970, text.data());
  return text;
}

}  // namespace outbox::store::sqlite
