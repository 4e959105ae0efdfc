#include "base/outage.hpp"

#include <cmath>
#include <utility>

#include "base/log.hpp"

namespace outbox {

std::optional<std::uint64_t> Outage::failed(const std::string& reason, TimePoint now) {
  if (!since_) since_ = now;
  ++failures_;
  auto found = logged_.find(reason);
  if (found != logged_.end() && now - found->second.at < kEvery) {
    ++found->second.left_out;
    return std::nullopt;
  }
  if (found == logged_.end()) {
    if (logged_.size() >= kMostReasons)
      std::erase_if(logged_, [&](const auto& old) { return now - old.second.at >= kEvery; });
    if (logged_.size() >= kMostReasons) return std::nullopt;
    found = logged_.emplace(reason, Logged{}).first;
  }
  any_logged_ = true;
  found->second.at = now;
  return std::exchange(found->second.left_out, 0);
}

std::optional<Outage::Over> Outage::works(TimePoint now) {
  if (!since_) return std::nullopt;
  const Over over{.lasted = now - *std::exchange(since_, std::nullopt),
                  .failures = std::exchange(failures_, 0)};
  if (!std::exchange(any_logged_, false)) return std::nullopt;
  return over;
}

void OutageLog::works(Outage::TimePoint now) {
  if (const auto over = outage_.works(now))
    log::info(works_, {{"down_seconds", in_seconds(over->lasted)}});
}

void OutageLog::failed(const Error& error, Outage::TimePoint now) {
  const std::string reason = error.text();
  if (const auto repeats = outage_.failed(reason, now))
    log::warn(fails_, {{"repeats", *repeats}, {"reason", reason}});
}

double in_seconds(std::chrono::nanoseconds length) {
  return std::round(std::chrono::duration<double>(length).count() * 10) / 10;
}

}  // namespace outbox
