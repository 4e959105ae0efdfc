// The ticks of a schedule, and the tasks that they enqueue. Pure but for the file of the time zone.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <outbox/event.hpp>
#include <outbox/schedule.hpp>
#include <string_view>
#include <vector>

#include "base/words.hpp"
#include "schedule/cron.hpp"
#include "schedule/time_zone.hpp"

namespace outbox {

template <>
inline constexpr std::array<std::string_view, 3> kWords<MissedTicks>{"one", "skip", "all"};

}  // namespace outbox

namespace outbox::schedule {

/// When a schedule ticks. Times in microseconds since 1970.
class Ticks {
 public:
  /// The error begins with the field.
  [[nodiscard]] static Result<Ticks> of(const Schedule& schedule);

  /// The first tick after this time; nullopt if none ever comes.
  [[nodiscard]] std::optional<std::int64_t> next_us(std::int64_t after_us) const;

  struct Newest {
    std::vector<std::int64_t> ticks;  ///< In order.
    bool more{false};                 ///< Whether older ticks were left out.
  };
  /// The newest ticks, at most `most`, with both `from` and `until` included.
  [[nodiscard]] Newest newest(std::int64_t from_us, std::int64_t until_us, std::size_t most) const;

 private:
  [[nodiscard]] Newest list_all(std::int64_t from_us, std::int64_t until_us) const;

  std::optional<Cron> cron_;
  TimeZone zone_;
  std::chrono::microseconds every_{0};
};

/// Which ticks enqueue a task at the time `now_us`, in order. `from_us` is the next tick of the
/// schedule as it was read.
[[nodiscard]] Ticks::Newest due_ticks(const Schedule& schedule, const Ticks& ticks,
                                      std::int64_t from_us, std::int64_t now_us);

/// The task of a tick.
[[nodiscard]] Event make_event(const Schedule& schedule, std::int64_t tick_us);

}  // namespace outbox::schedule
