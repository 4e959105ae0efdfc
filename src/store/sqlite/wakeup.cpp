// Wakes the reader when an event was committed: by inotify on the WAL where that works, else by looking at PRAGMA data_version
// every few milliseconds (1.7 us a look).
#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <utility>

#include "base/event_fd.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/queries.hpp"
#include "store/sqlite/wal_watch.hpp"

namespace outbox::store::sqlite {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

/// Between the last write to the WAL and the commit becoming visible lies the writer's fsync: look often at first.
constexpr auto kSharp = 20ms;
constexpr auto kSharpLook = 500us;
/// A commit whose fsync takes longer than this is found by the next idle poll.
constexpr auto kWatchful = 2s;
constexpr auto kLook = 5ms;

class SqliteWakeup final : public Wakeup {
 public:
  SqliteWakeup(Connection connection, bool armed, EventFd interrupted)
      : connection_(std::move(connection)), armed_(armed), interrupted_(std::move(interrupted)) {}

  [[nodiscard]] Result<bool> arm() override {
    if (!armed_) return false;
    // Reading opens the WAL, so that there is a file to watch.
    auto newest = connection_.integer(query::kNewestSeq);
    if (!newest) return pass(newest);
    newest_ = *newest;
    data_version_.reset();
    // What was written before the watch, or since the last wait(), may be a commit that is not visible yet: the first look
    // of wait() alone would miss it.
    const bool watched = watch_ != nullptr;
    if (!watched) watch_ = std::make_unique<WalWatch>(connection_.file());
    if (watch_->drain() || !watched) written_at_ = Clock::now();
    return true;
  }

  [[nodiscard]] Status disarm() override { return {}; }

  [[nodiscard]] Result<Wake> wait(Duration longest) override {
    const TimePoint deadline =
        Clock::now() + std::chrono::duration_cast<TimePoint::duration>(longest);
    while (true) {
      if (watch_ && watch_->drain()) written_at_ = Clock::now();
      auto woken = has_new_event();
      if (!woken) return pass(woken);
      if (*woken) return Wake::notified;
      const TimePoint now = Clock::now();
      if (now >= deadline) return Wake::timeout;
      if (interrupted_before(std::min(deadline, next_look(now)))) return Wake::interrupted;
    }
  }

  void interrupt() noexcept override { interrupted_.signal(); }
  [[nodiscard]] std::uint64_t statements() const override { return connection_.statements(); }

 private:
  // Settlements and heartbeats commit too: only a new event wakes.
  [[nodiscard]] Result<bool> has_new_event() {
    auto version = connection_.integer(query::kDataVersion);
    if (!version) return pass(version);
    if (data_version_ == *version) return false;
    data_version_ = *version;
    auto newest = connection_.integer(query::kNewestSeq);
    if (!newest) return pass(newest);
    return *newest > newest_;
  }

  [[nodiscard]] TimePoint next_look(TimePoint now) const {
    const auto quiet = now - written_at_;
    const bool watching = watch_ && watch_->works();
    if (watching && quiet < kSharp) return now + kSharpLook;
    if (!watching || quiet < kWatchful) return now + kLook;
    return TimePoint::max();
  }

  [[nodiscard]] bool interrupted_before(TimePoint until) {
    const auto left =
        std::chrono::nanoseconds(std::max(until - Clock::now(), TimePoint::duration::zero()))
            .count();
    const timespec timeout{.tv_sec = static_cast<time_t>(left / 1'000'000'000),
                           .tv_nsec = static_cast<long>(left % 1'000'000'000)};
    std::array<pollfd, 2> fds{
        pollfd{.fd = interrupted_.fd(), .events = POLLIN, .revents = 0},
        pollfd{.fd = watch_ ? watch_->fd() : -1, .events = POLLIN, .revents = 0}};
    if (::ppoll(fds.data(), fds.size(), &timeout, nullptr) <= 0) return false;
    return (fds[0].revents & POLLIN) != 0 && interrupted_.clear();
  }

  Connection connection_;
  const bool armed_;
  const EventFd interrupted_;
  std::unique_ptr<WalWatch> watch_;
  std::optional<std::int64_t> data_version_;  ///< At the last look.
  std::int64_t newest_{0};                    ///< The newest seq when it was armed.
  TimePoint written_at_{};                    ///< Last known write to the WAL.
};

}  // namespace

Result<std::unique_ptr<Wakeup>> make_wakeup(Connection connection, bool armed) {
  auto interrupted = EventFd::create();
  if (!interrupted) return pass(interrupted);
  return std::make_unique<SqliteWakeup>(std::move(connection), armed, std::move(*interrupted));
}

}  // namespace outbox::store::sqlite
