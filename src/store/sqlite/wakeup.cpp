// Wakes the reader when an event was committed: by inotify on the WAL where that works, else by
// reading PRAGMA data_version every few milliseconds (1.7 us each).
#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/queries.hpp"
#include "store/sqlite/wal_watch.hpp"
#include "store/wait.hpp"

namespace outbox::store::sqlite {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

/// Between the last write to the WAL and the moment when the commit becomes visible lies the
/// writer's fsync, so it polls often at first.
constexpr auto kFastFor = 20ms;
constexpr auto kFastPoll = 500us;
/// A commit whose fsync takes longer than this is found by the next idle poll.
constexpr auto kPollFor = 2s;
constexpr auto kPoll = 5ms;

class SqliteWakeup final : public Wakeup {
 public:
  SqliteWakeup(Connection connection, bool armed, EventFd interrupted)
      : connection_(std::move(connection)), armed_(armed), interrupted_(std::move(interrupted)) {}

  [[nodiscard]] Result<bool> arm() override {
    if (!armed_) return false;
    // Reading opens the WAL, so that there is a file to watch.
    OUTBOX_TRY(newest_, connection_.integer(query::kNewestSeq));
    data_version_.reset();
    // A write before the watch began, or since the last wait(), may be a commit that is not visible
    // yet; the first poll of wait() alone would miss it.
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
      OUTBOX_TRY(const bool woken, has_new_event());
      if (woken) return Wake::notified;
      const TimePoint now = Clock::now();
      if (now >= deadline) return Wake::timeout;
      OUTBOX_TRY(const bool interrupted, wait_for(interrupted_, watch_ ? watch_->fd() : -1,
                                                  std::min(deadline, next_poll(now))));
      if (interrupted) return Wake::interrupted;
    }
  }

  [[nodiscard]] Result<Told> told(std::string_view /*snapshot*/) override { return Told::nothing; }
  [[nodiscard]] FeedState feed() const override { return {}; }
  [[nodiscard]] bool stays_armed() const override { return true; }
  void interrupt() noexcept override { interrupted_.signal(); }
  [[nodiscard]] std::uint64_t statements() const override { return connection_.statements(); }

 private:
  // Settlements and heartbeats commit, too, but only a new event wakes the reader.
  [[nodiscard]] Result<bool> has_new_event() {
    OUTBOX_TRY(const std::int64_t version, connection_.integer(query::kDataVersion));
    if (data_version_ == version) return false;
    data_version_ = version;
    OUTBOX_TRY(const std::int64_t newest, connection_.integer(query::kNewestSeq));
    return newest > newest_;
  }

  [[nodiscard]] TimePoint next_poll(TimePoint now) const {
    const auto quiet = now - written_at_;
    const bool watching = watch_ && watch_->works();
    if (watching && quiet < kFastFor) return now + kFastPoll;
    if (!watching || quiet < kPollFor) return now + kPoll;
    return TimePoint::max();
  }

  Connection connection_;
  const bool armed_;
  const EventFd interrupted_;
  std::unique_ptr<WalWatch> watch_;
  std::optional<std::int64_t> data_version_;  ///< The value at the last poll.
  std::int64_t newest_{0};                    ///< The newest seq when it was armed.
  TimePoint written_at_{};                    ///< The time of the last known write to the WAL.
};

}  // namespace

Result<std::unique_ptr<Wakeup>> make_wakeup(Connection connection, bool armed) {
  OUTBOX_TRY(EventFd interrupted, EventFd::create());
  return std::make_unique<SqliteWakeup>(std::move(connection), armed, std::move(interrupted));
}

}  // namespace outbox::store::sqlite
