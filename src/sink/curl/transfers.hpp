// Runs transfers of libcurl on a thread of its own. The caller prepares an easy handle, hands it over under a number of its
// choice, and gets it back with the result:
//
//   OUTBOX_TRY(transfers_, Transfers::start({.capacity = 16}, [this] { wake(); }));
//   transfers_->submit(7, std::move(easy), now + std::chrono::seconds(20));
//   ...
//   for (Transfers::Done& done : transfers_->take_done()) settle(done.ticket, done.easy.get(), done.code);
//
// Threads: One thread at a time. `on_done` and the callbacks of the handles are called on the thread of the transfers.
// Lifetime: what a handle's options point to (body, headers, data of callbacks) stays in place until the handle is back, or
//           the Transfers are destroyed.
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
    /// Most transfers between submit() and take_done(). So many connections are kept for the next ones.
    std::size_t capacity{16};
    /// Most connections to one host, beyond which transfers wait. 0: no limit. Default: 0.
    std::size_t per_host{0};
  };

  struct Done {
    Ticket ticket{0};
    Easy easy;  ///< For curl_easy_getinfo().
    /// CURLE_OPERATION_TIMEDOUT: also when the deadline of submit() passed. CURLE_ABORTED_BY_CALLBACK: cancelled.
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

  /// False: the capacity is used up, and the handle was not taken. The transfer is done at the deadline at the latest, also while
  /// it waits for a connection, where libcurl's own limits do not apply.
  [[nodiscard]] bool submit(Ticket ticket, Easy&& easy, TimePoint deadline);
  /// Those that are done since the last call. Does not wait.
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

  // Of the thread.
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
