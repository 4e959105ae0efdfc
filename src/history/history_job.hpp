// Writes what a relay or worker did in each interval (docs/design/history.md), on a thread of its
// own, which delivery never waits for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <outbox/relay.hpp>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "base/outage.hpp"
#include "history/work_done.hpp"
#include "store/store.hpp"

namespace outbox::history {

struct HistoryJobOptions {
  store::StoreOptions store;
  std::chrono::milliseconds interval{0};  ///< 0: nothing is written.
};

/// Where a relay with these options writes its history, and how often.
[[nodiscard]] HistoryJobOptions history_options(const RelayOptions& relay);

/// Calls of start() and stop() must not overlap.
class HistoryJob {
 public:
  /// Any thread may call it.
  using ReadReport = std::function<RelayReport()>;

  HistoryJob(HistoryJobOptions options, ReadReport read)
      : options_(std::move(options)), read_(std::move(read)) {}
  HistoryJob(const HistoryJob&) = delete;
  HistoryJob& operator=(const HistoryJob&) = delete;
  HistoryJob(HistoryJob&&) = delete;
  HistoryJob& operator=(HistoryJob&&) = delete;
  /// Writes nothing more, and waits for the statement that is running.
  ~HistoryJob() = default;

  /// What the report has now was done before. A second call does nothing.
  void start();
  /// Ends the thread and writes what was done since its last row, unless the store failed last.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;

  /// The rows of an interval. They are written again, as they are, until the store has taken them.
  struct Batch {
    EventId who{};
    std::int64_t at_us{0};
    std::vector<store::HistoryRow> rows;
  };

  void run(const std::stop_token& stop);
  /// The time until the next interval begins, by the store's clock as far as it is known.
  [[nodiscard]] std::chrono::microseconds until_next() const;
  [[nodiscard]] Status write();
  [[nodiscard]] Status write_batch(store::WorkHistory& history);
  void note(const Status& status);

  const HistoryJobOptions options_;
  const ReadReport read_;

  // Used by the thread, and by start() and stop() while there is none.
  EventId who_{};
  RelayReport before_{};       ///< Up to this report everything is in rows.
  Clock::time_point taken_{};  ///< When that report was made.
  std::int64_t last_at_us_{0};
  std::chrono::microseconds ahead_{0};  ///< The store's clock is so far ahead of this machine's.
  std::optional<Batch> unwritten_;
  Outage outage_;

  Mutex mutex_;
  std::condition_variable_any stopped_;
  std::jthread thread_;
};

}  // namespace outbox::history
