#include "store/sqlite/wakeup.hpp"

#include <poll.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "store/sqlite/queries.hpp"

namespace outbox::store::sqlite {
namespace {

using namespace std::chrono_literals;

/// Between the last write to the WAL and the commit becoming visible lies the writer's fsync: look often at first.
constexpr auto kSharp = 20ms;
constexpr auto kSharpLook = 500us;
/// A commit whose fsync takes longer than this is found by the next idle poll.
constexpr auto kWatchful = 2s;
constexpr auto kLook = 5ms;

}  // namespace

Result<std::unique_ptr<SqliteWakeup>> SqliteWakeup::create(Connection connection, bool armed) {
  auto interrupted = EventFd::create();
  if (!interrupted) return pass(interrupted);
  return std::unique_ptr<SqliteWakeup>(
      new SqliteWakeup(std::move(connection), armed, std::move(*interrupted)));
}

Result<bool> SqliteWakeup::arm() {
  if (!armed_) return false;
  // Looking opens the WAL, so that there is a file to watch.
  auto newest = connection_.integer(query::kNewestSeq);
  if (!newest) return pass(newest);
  newest_ = *newest;
  data_version_.reset();
  // What was written before the watch, or since the last wait(), may be a commit that is not visible yet: the first look
  // of wait() alone would miss it.
  const bool watched = watch_ != nullptr;
  if (!watched) watch_ = std::make_unique<WalWatch>(connection_.file());
  if (watch_->drain() || !watched) written_at_ = std::chrono::steady_clock::now();
  return true;
}

Result<Wakeup::Wake> SqliteWakeup::wait(Duration longest) {
  const TimePoint deadline =
      std::chrono::steady_clock::now() + std::chrono::duration_cast<TimePoint::duration>(longest);
  while (true) {
    if (watch_ && watch_->drain()) written_at_ = std::chrono::steady_clock::now();
    auto woken = has_new_event();
    if (!woken) return pass(woken);
    if (*woken) return Wake::notified;
    const TimePoint now = std::chrono::steady_clock::now();
    if (now >= deadline) return Wake::timeout;
    if (sleep_until(std::min(deadline, next_look(now)))) return Wake::interrupted;
  }
}

// Settlements and heartbeats commit too: only a new event wakes.
Result<bool> SqliteWakeup::has_new_event() {
  auto version = connection_.integer(query::kDataVersion);
  if (!version) return pass(version);
  if (data_version_ == *version) return false;
  data_version_ = *version;
  auto newest = connection_.integer(query::kNewestSeq);
  if (!newest) return pass(newest);
  return *newest > newest_;
}

SqliteWakeup::TimePoint SqliteWakeup::next_look(TimePoint now) const {
  const auto quiet = now - written_at_;
  const bool told = watch_ && watch_->works();
  if (told && quiet < kSharp) return now + kSharpLook;
  if (!told || quiet < kWatchful) return now + kLook;
  return TimePoint::max();
}

bool SqliteWakeup::sleep_until(TimePoint until) {
  const auto left = std::max(until - std::chrono::steady_clock::now(), TimePoint::duration::zero());
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
  const timespec timeout{.tv_sec = static_cast<time_t>(nanoseconds / 1'000'000'000),
                         .tv_nsec = static_cast<long>(nanoseconds % 1'000'000'000)};
  std::array<pollfd, 2> fds{
      pollfd{.fd = interrupted_.fd(), .events = POLLIN, .revents = 0},
      pollfd{.fd = watch_ ? watch_->fd() : -1, .events = POLLIN, .revents = 0}};
  if (::ppoll(fds.data(), fds.size(), &timeout, nullptr) <= 0) return false;
  return (fds[0].revents & POLLIN) != 0 && interrupted_.clear();
}

}  // namespace outbox::store::sqlite
