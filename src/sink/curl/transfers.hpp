// Runs transfers of libcurl on a thread of its own. The caller prepares an easy handle, hands it
// over under a number of its choice, and gets it back with the result:
//
//   OUTBOX_TRY(transfers_, Transfers::start({.capacity = 16}, [this] { wake(); }));
//   transfers_->submit(7, std::move(easy), now + std::chrono::seconds(20));
//   ...
//   for (auto& done : transfers_->take_done()) settle(done.ticket, done.easy.get(), done.code);
//
// Threads: One thread at a time. `on_done` and the handles' callbacks run on the transfers' thread.
// Lifetime: what a handle's options point to (body, headers, data of callbacks) must stay in place
// until the handle is back or the Transfers are destroyed.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <outbox/error.hpp>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/mutex.hpp"
#include "sink/curl/handles.hpp"

namespace outbox::sink::curl {

class Transfers {
 public:
  using Ticket = std::uint64_t;
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Options {
    /// The most transfers between submit() and take_done(), and the most connections that are kept.
    std::size_t capacity{16};
    /// The most connections to one host; further transfers wait. 0 means no limit. Default: 0.
    std::size_t per_host{0};
  };

  struct Done {
    Ticket ticket{0};
    Easy easy;  ///< Returned so that curl_easy_getinfo() can be called.
    /// CURLE_OPERATION_TIMEDOUT also means that the deadline of submit() passed;
    /// CURLE_ABORTED_BY_CALLBACK means that the transfer was cancelled.
    CURLcode code{CURLE_OK};
  };

  /// Fails when the system has no threads left.
  [[nodiscard]] static Result<std::unique_ptr<Transfers>> start(const Options& options,
                                                                std::function<void()> on_done);
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;
  Transfers(Transfers&&) = delete;
  Transfers& operator=(Transfers&&) = delete;
  /// Ends all transfers and closes all connections.
  ~Transfers();

  /// Returns false, and leaves the handle, if the capacity is used up. The transfer ends by the
  /// deadline, even while it waits for a connection, where libcurl's own limits do not apply.
  [[nodiscard]] bool submit(Ticket ticket, Easy&& easy, TimePoint deadline);
  /// The transfers that ended since the last call. Does not wait.
  [[nodiscard]] std::vector<Done> take_done();
  /// Ends all transfers: their handles are done when this returns, and nothing more is sent.
  void cancel_all();

 private:
  struct Job {
    Ticket ticket{0};
    Easy easy;
    TimePoint deadline{};
  };

  Transfers(const Options& options, std::function<void()> on_done);
  void run(const std::stop_token& stop);
  void take_orders();
  void begin(Job job);
  void take_finished();
  void finish_overdue();
  void finish(CURL* easy, CURLcode code);
  void finish_all(CURLcode code);
  void hand_over();
  [[nodiscard]] int wait_ms() const;

  const std::size_t capacity_;
  const std::function<void()> on_done_;
  const Multi multi_;

  // Used by the thread only.
  std::unordered_map<CURL*, Job> running_;
  std::vector<Done> finished_;

  Mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Job> submitted_ OUTBOX_GUARDED_BY(mutex_);
  std::vector<Done> done_ OUTBOX_GUARDED_BY(mutex_);
  std::size_t used_ OUTBOX_GUARDED_BY(mutex_){0};
  bool cancelling_ OUTBOX_GUARDED_BY(mutex_){false};

  std::jthread thread_;
};

}  // namespace outbox::sink::curl
