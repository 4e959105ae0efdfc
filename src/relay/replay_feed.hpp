// Reads what a replay sends again, for the strands of one subscription: a thread and a connection
// of its own, as long as it lasts.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.hpp"
#include "feed/pump.hpp"
#include "store/replay.hpp"
#include "subscription/replay_filter.hpp"

namespace outbox::relay {

class ReplayFeed {
 public:
  /// `requests`: what is read first, for one strand each; rows and bytes are those of a page.
  /// `failed` is called once, from the feed's thread, when the store fails. Nothing is read after
  /// that.
  ReplayFeed(std::unique_ptr<store::Replays> replays, std::vector<store::ReplayRequest> requests,
             const subscription::ReplayChoice& choice, std::function<void(const Error&)> failed);

  /// In the order of the requests; then start().
  void add(feed::PageConsumer& consumer);
  void start();
  /// What the thread does again and again: a page for each strand that has room. False: none had.
  /// The simulation calls it instead of start().
  [[nodiscard]] Result<bool> read_round(const std::stop_token& stop);
  /// Returns when the consumers are no longer used.
  void stop() { thread_ = {}; }
  /// Any thread: a consumer has room again.
  void room();

 private:
  struct Strand {
    store::ReplayRequest request;
    feed::PageConsumer* consumer{nullptr};
    std::int64_t given{0};  ///< The position up to which the consumer got pages.
    bool ended{false};
  };
  void run(const std::stop_token& stop);
  [[nodiscard]] Status read_page(Strand& strand);

  const std::unique_ptr<store::Replays> replays_;
  const subscription::ReplayFilter filter_;
  const std::function<void(const Error&)> failed_;
  std::vector<Strand> strands_;  ///< The feed's thread only, from start() on.
  std::size_t added_{0};

  Mutex mutex_;
  std::condition_variable_any changed_;
  bool rung_ OUTBOX_GUARDED_BY(mutex_){false};

  std::jthread thread_;
};

}  // namespace outbox::relay
