// Reads the log for all subscriptions: one thread, one connection. Subscriptions that stand at the same place share a
// fetch, which is fanned out; one that is behind reads its own pages, in turn with the others, until it has caught up.
// docs/design/relay.md.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "feed/pace.hpp"
#include "relay/subscription_loop.hpp"
#include "store/store.hpp"

namespace outbox::relay {

struct PumpOptions {
  std::size_t page_rows{1000};
  std::size_t page_bytes{std::size_t{4} << 20U};
  feed::PaceOptions pace{};
  /// A subscription whose cursor rests is told of the head once it is so far behind, at most once a second, so that the
  /// floor of the next reader and retention do not rot.
  std::int64_t quiet_seqs{10000};
  std::uint64_t quiet_horizon{100000};
};

class LogPump {
 public:
  LogPump(std::unique_ptr<store::LogReader> reader, std::unique_ptr<store::Wakeup> wakeup,
          PumpOptions options, std::function<void(const Error&)> failed);
  LogPump(const LogPump&) = delete;
  LogPump& operator=(const LogPump&) = delete;
  LogPump(LogPump&&) = delete;
  LogPump& operator=(LogPump&&) = delete;
  ~LogPump();

  /// Reads for these from their start cursors on; before start().
  [[nodiscard]] Status begin(const std::vector<SubscriptionLoop*>& loops);
  void start();
  void stop();

  // Any thread.
  void add(SubscriptionLoop* loop, store::Cursor cursor);
  /// Returns when the reader no longer touches it.
  void remove(SubscriptionLoop* loop);
  void ring();
  /// A window has room again: rings only if the reader waits for that.
  void room();
  [[nodiscard]] std::uint64_t fetches() const { return fetches_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t statements() const {
    return statements_.load(std::memory_order_relaxed);
  }

 private:
  struct Member {
    SubscriptionLoop* loop{nullptr};
    std::int64_t told_bound{0};
    std::uint64_t told_horizon{0};
    TimePoint told_at{};
  };
  /// Subscriptions at the same place.
  struct Group {
    store::Cursor cursor;
    std::vector<Member> members;
  };

  void run(const std::stop_token& stop);
  [[nodiscard]] Status work(const std::stop_token& stop);
  void obey();
  /// Reads one page for each group that can take one. `worked`: events came; `more`: there is more at once.
  struct Turn {
    bool fetched{false};
    bool worked{false};
    bool more{false};
  };
  [[nodiscard]] Result<Turn> turn();
  void split_off_full_members();
  void merge_groups();
  [[nodiscard]] bool has_room(const Member& member) const;
  [[nodiscard]] Status fetch(Group& group, std::shared_ptr<const store::Pair> until, Turn& turn);
  void deliver(Group& group, store::Page page);
  [[nodiscard]] bool must_be_told(const Member& member, const store::Pair& pair,
                                  TimePoint now) const;
  void wait_for_bell(std::chrono::nanoseconds longest);
  [[nodiscard]] Status idle(const feed::Pace::Step& step);
  [[nodiscard]] Status after_turn(const Turn& turn);

  std::unique_ptr<store::LogReader> reader_;
  std::unique_ptr<store::Wakeup> wakeup_;
  const PumpOptions options_;
  const std::function<void(const Error&)> failed_;

  // The reader's thread only.
  std::vector<Group> groups_;
  feed::Pace pace_;
  std::shared_ptr<const store::Pair>
      newest_;  ///< The pair of the newest fetch of the present in this turn.

  std::mutex mutex_;
  std::condition_variable bell_;
  bool rung_{false};
  struct Command {
    SubscriptionLoop* add{nullptr};
    SubscriptionLoop* remove{nullptr};
    store::Cursor cursor{};
    bool* done{nullptr};
  };
  std::vector<Command> commands_;
  bool running_{false};
  std::condition_variable obeyed_;
  std::atomic<bool> wants_room_{false};
  std::atomic<std::uint64_t> fetches_{0};
  std::atomic<std::uint64_t> statements_{0};

  std::jthread thread_;
};

}  // namespace outbox::relay
