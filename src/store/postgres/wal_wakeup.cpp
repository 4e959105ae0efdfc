// The wake-up of a relay with a feed from the write-ahead log (docs/design/feed.md, "Waking").
#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "store/postgres/wal_feed.hpp"
#include "store/wait.hpp"

namespace outbox::store::postgres {
namespace {

class WalWakeup final : public Wakeup {
 public:
  WalWakeup(std::unique_ptr<Wakeup> beneath, std::shared_ptr<WalFeed> feed, EventFd interrupted,
            EventFd bell)
      : beneath_(std::move(beneath)),
        feed_(std::move(feed)),
        interrupted_(std::move(interrupted)),
        bell_(std::move(bell)) {
    feed_->add_bell(bell_);
  }
  WalWakeup(const WalWakeup&) = delete;
  WalWakeup& operator=(const WalWakeup&) = delete;
  WalWakeup(WalWakeup&&) = delete;
  WalWakeup& operator=(WalWakeup&&) = delete;
  ~WalWakeup() override { feed_->remove_bell(bell_); }

  [[nodiscard]] Result<Told> told(std::string_view snapshot) override {
    OUTBOX_TRY(beneath_->told(snapshot));
    const WalTime now = std::chrono::steady_clock::now();
    Snapshot seen;
    if (!snapshot.empty()) {
      OUTBOX_TRY(seen, parse_snapshot(snapshot));
    }
    const WalFeed::News news = feed_->news();
    const bool begins = std::exchange(stream_, news.stream) != news.stream;
    if (begins) unseen_.clear();
    const bool is_late = !begins && !snapshot.empty() && !unseen_.all_in(seen, now);
    taken_ = feed_->take_commits(taken_, unseen_);
    if (stream_ == 0) return Told::nothing;
    // The snapshot may be older than the stream: only a later one tells what the stream cannot.
    if (begins || snapshot.empty()) return Told::more;
    if (is_late) return Told::late;
    return unseen_.all_in(seen, now) ? Told::all : Told::more;
  }

  [[nodiscard]] FeedState feed() const override { return feed_->state(); }

  // The stream needs no arming, and arm() is not called while there is one.
  [[nodiscard]] Result<bool> arm() override { return beneath_->arm(); }
  [[nodiscard]] Status disarm() override { return beneath_->disarm(); }
  [[nodiscard]] bool stays_armed() const override {
    return stream_ == 0 && beneath_->stays_armed();
  }

  [[nodiscard]] Result<Wake> wait(Duration longest) override {
    if (stream_ == 0) return beneath_->wait(longest);
    const auto until =
        std::chrono::steady_clock::now() + std::min<Duration>(longest, std::chrono::hours(1));
    while (true) {
      (void)bell_.clear();
      const WalFeed::News news = feed_->news();
      if (news.commits != taken_) return Wake::notified;
      if (news.stream != stream_) return Wake::interrupted;  // the stream has ended
      if (std::chrono::steady_clock::now() >= until) return Wake::timeout;
      OUTBOX_TRY(const bool interrupted, wait_for(interrupted_, bell_.fd(), until));
      if (interrupted) return Wake::interrupted;
    }
  }

  void interrupt() noexcept override {
    interrupted_.signal();
    beneath_->interrupt();
  }
  [[nodiscard]] std::uint64_t statements() const override { return beneath_->statements(); }

 private:
  const std::unique_ptr<Wakeup> beneath_;
  const std::shared_ptr<WalFeed> feed_;
  const EventFd interrupted_;
  const EventFd bell_;
  std::uint64_t stream_{0};  ///< The stream that counted when told() was called last.
  std::uint64_t taken_{0};   ///< How many commits were taken over from the feed.
  UnseenCommits unseen_;
};

}  // namespace

Result<std::unique_ptr<Wakeup>> make_wal_wakeup(std::unique_ptr<Wakeup> beneath,
                                                std::shared_ptr<WalFeed> feed) {
  OUTBOX_TRY(EventFd interrupted, EventFd::create());
  OUTBOX_TRY(EventFd bell, EventFd::create());
  return std::make_unique<WalWakeup>(std::move(beneath), std::move(feed), std::move(interrupted),
                                     std::move(bell));
}

}  // namespace outbox::store::postgres
