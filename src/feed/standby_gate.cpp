#include "feed/standby_gate.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace outbox::feed {
namespace {

constexpr std::chrono::milliseconds kFirstPause{1};
constexpr std::chrono::milliseconds kLongestPause{50};
/// A standby that is slow for a shorter time is no news.
constexpr std::chrono::seconds kTellAfter{2};

}  // namespace

StandbyGate::Answer StandbyGate::take(const store::Replication& found, TimePoint now) {
  found_ = found;
  if (found.flushed >= standbys_.wanted()) {
    const bool was_news = told_ || without_;
    since_.reset();
    pause_ = {};
    told_ = without_ = false;
    return {.pass = true, .news = was_news ? News::over : News::none};
  }
  if (without_) return {};
  if (!since_) since_ = now;
  if (limit_ > std::chrono::nanoseconds(0) && now - *since_ >= limit_) {
    without_ = true;
    return {.pass = true, .news = News::without};
  }
  pause_ = std::clamp<std::chrono::nanoseconds>(pause_ * 2, kFirstPause, kLongestPause);
  const bool tell = !told_ && now - *since_ >= kTellAfter;
  told_ = told_ || tell;
  return {.pass = false, .news = tell ? News::waits : News::none};
}

std::string StandbyGate::words() const {
  if (found_.hidden)
    return "this login may not see how far standbys are: GRANT pg_monitor TO outbox_relay";
  return fmt::format("{} of {} standbys {} flushed them, {} {} connected", found_.flushed,
                     standbys_.wanted(), found_.flushed == 1 ? "has" : "have", found_.connected,
                     found_.connected == 1 ? "is" : "are");
}

}  // namespace outbox::feed
