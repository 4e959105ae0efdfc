// Reads the log for all strands, with one thread and one connection. Strands at the same cursor
// share a fetch; in a backlog strands that are close to each other come together. A strand that is
// far behind reads its own pages, in turn with the others, until it has caught up. See
// docs/design/relay.md, "The pump".
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/mutex.hpp"
#include "feed/pace.hpp"
#include "feed/standby_gate.hpp"
#include "store/delivery.hpp"

namespace outbox::feed {

/// The pump's view of a strand. The pump's thread calls it.
class PageConsumer {
 public:
  virtual ~PageConsumer() = default;

  [[nodiscard]] virtual bool has_room(std::size_t pages) const = 0;
  /// Takes a page, which continues the one before it. Pages without events are passed too.
  virtual void take_page(const std::shared_ptr<const store::Page>& page) = 0;
};

/// How often reading began because a commit woke the pump, and because a pause was over.
struct Wakeups {
  std::atomic<std::uint64_t> by_commit{0};
  std::atomic<std::uint64_t> by_time{0};
};

struct PumpOptions {
  std::size_t page_rows{1000};
  std::size_t page_bytes{std::size_t{4} << 20U};
  PaceOptions pace{};
  std::optional<store::Standbys> standbys{};  ///< If events wait for standbys.
  std::chrono::nanoseconds standby_limit{0};  ///< For how long; 0: for as long as it takes.
  Wakeups* wakeups{nullptr};  ///< What the pump counts in. May be null; else it outlives the pump.
};

class Pump {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// `failed` is called once, on the pump's thread, when the store fails; then reading ends.
  Pump(std::unique_ptr<store::LogReader> reader, std::unique_ptr<store::Wakeup> wakeup,
       PumpOptions options, std::function<void(const Error&)> failed);

  [[nodiscard]] Status start();
  void stop();

  // Called on any thread.
  void add(PageConsumer& consumer, store::LaneMask lanes, store::Cursor cursor);
  /// Returns when the pump no longer uses the consumer.
  void remove(const PageConsumer& consumer);
  /// Says that a consumer has room again.
  void room();
  /// Why events wait for standbys; empty if they do not.
  [[nodiscard]] std::string waits() const;
  [[nodiscard]] std::uint64_t fetches() const { return fetches_.load(std::memory_order_relaxed); }
  [[nodiscard]] store::FeedState feed() const { return wakeup_->feed(); }
  [[nodiscard]] std::uint64_t statements() const {
    return statements_.load(std::memory_order_relaxed);
  }

 private:
  /// Consumers with the same lanes at the same cursor.
  struct Group {
    store::LaneMask lanes{store::kAllLanes};
    store::Cursor cursor;
    std::vector<PageConsumer*> members;
    std::shared_ptr<const store::Pair> pair{};  ///< The pair of its last page.
    bool in_backlog{false};                     ///< Whether more rows follow its last page.
    /// How long the group still waits for full groups close behind it; at most half of its time.
    std::chrono::nanoseconds patience{0};
    std::optional<TimePoint> waits_since{};  ///< Since when its patience wears off.

    [[nodiscard]] bool has_room(std::size_t pages) const;
    /// Whether both groups read the same rows in the same order, and this one is ahead.
    [[nodiscard]] bool is_ahead_of(const Group& other) const;
  };
  /// The result of one round over all groups.
  struct Turn {
    TimePoint now;
    /// The least patience of groups that wait.
    std::chrono::nanoseconds patience{std::chrono::hours(1)};
    bool fetched{false};
    std::size_t events{0};
    bool more{false};  ///< Whether there is more to read at once.
  };

  void post(std::function<void()> command);
  void ring();
  void run(const std::stop_token& stop);
  [[nodiscard]] Status read_until(const std::stop_token& stop);
  /// Returns false if there were no commands; with `last`, post() then runs all later ones itself.
  bool run_commands(bool last);
  [[nodiscard]] Result<Turn> turn();
  void split_off_full_members();
  [[nodiscard]] bool waits_for_others(Group& group, Turn& turn) const;
  void merge_groups();
  [[nodiscard]] bool is_next_again(const Group& group) const;
  [[nodiscard]] std::shared_ptr<const store::Pair> pair_to_begin(const Group& group) const;
  void end_where_another_stands(const Group& group, store::Page& page) const;
  [[nodiscard]] Status fetch(Group& group, Turn& turn);
  [[nodiscard]] Status look_at_standbys(Turn& turn);
  [[nodiscard]] Result<bool> have_standbys(std::chrono::nanoseconds longest);
  void tell(StandbyGate::News news);
  [[nodiscard]] Status after_turn(const Turn& turn);
  [[nodiscard]] Status idle(const Pace::Step& step);
  void count_wakeup(bool by_commit) const;
  void wait_for_bell(std::chrono::nanoseconds longest);

  const std::unique_ptr<store::LogReader> reader_;
  const std::unique_ptr<store::Wakeup> wakeup_;
  const PumpOptions options_;
  const std::function<void(const Error&)> failed_;

  // Used by the pump's thread only, while it runs.
  std::vector<Group> groups_;
  Pace pace_;
  /// The newest pair fetched in this turn. Other drained groups read to the same end, and merge.
  std::shared_ptr<const store::Pair> newest_;
  std::optional<StandbyGate> gate_;
  /// No new pair begins until the standbys have what was read last; at the beginning, no page is
  /// read until they have what was in the log then.
  bool awaits_standbys_{false};
  bool begun_{true};
  /// The pair that is read again when they have it. Not set if a group was added meanwhile, whose
  /// cursor may be behind it.
  std::shared_ptr<const store::Pair> awaited_;

  mutable Mutex mutex_;
  std::condition_variable_any bell_;
  bool rung_ OUTBOX_GUARDED_BY(mutex_){false};
  bool running_ OUTBOX_GUARDED_BY(mutex_){false};
  std::vector<std::function<void()>> commands_ OUTBOX_GUARDED_BY(mutex_);

  std::string waits_ OUTBOX_GUARDED_BY(mutex_);

  std::atomic<bool> wants_room_{false};
  std::atomic<std::uint64_t> fetches_{0};
  std::atomic<std::uint64_t> statements_{0};

  std::jthread thread_;
};

}  // namespace outbox::feed
