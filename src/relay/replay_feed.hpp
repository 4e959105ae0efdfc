// Reads what a replay sends again, for the strands of one subscription. It has a thread and a
// connection of its own as long as the replay lasts.
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
  /// `requests` say what is read first, one for each strand; their rows and bytes are those of a
  /// page. `failed` is called once, from the feed's thread, when the store fails. Nothing is read
  /// after that.
  ReplayFeed(std::unique_ptr<store::Replays> replays, std::vector<store::ReplayRequest> requests,
             const subscription::ReplayChoice& choice, std::function<void(const Error&)> failed);

  /// Adds the consumers in the order of the requests, before start().
  void add(feed::PageConsumer& consumer);
  void start();
  /// Reads a page for each strand that has room, and returns false if none had. The thread does
  /// this again and again. The simulation calls it instead of start().
  [[nodiscard]] Result<bool> read_round(const std::stop_token& stop);
  /// Returns when the consumers are no longer used.
  void stop() { thread_ = {}; }
  /// A consumer has room again. Any thread may call this.
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
  /// Only the feed's thread uses them from start() on.
  std::vector<Strand> strands_;
  std::size_t added_{0};

  Mutex mutex_;
  std::condition_variable_any changed_;
  bool rung_ OUTBOX_GUARDED_BY(mutex_){false};

  std::jthread thread_;
};

}  // namespace outbox::relay
