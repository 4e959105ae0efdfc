// Writes settlements on a thread and a connection of its own, so that a commit never delays
// sending. Rows that arrive during a commit are written together in the next transaction.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <variant>
#include <vector>

#include "base/mutex.hpp"
#include "relay/progress_work.hpp"
#include "relay/totals.hpp"
#include "store/store.hpp"

namespace outbox::relay {

class Settler {
 public:
  /// What is written in one transaction.
  using Work = ProgressWork;

  /// `failed` is called once, from the settler's thread, when the rows cannot be written. Errors
  /// with Remedy::retry_call are retried. `counts` must outlive this object.
  Settler(std::unique_ptr<store::Progress> progress, Totals& totals,
          std::function<void(const Error&)> failed);

  /// The destructor returns when all rows are written, or the store has failed.
  void start();
  /// Any thread may call this. `written` is called from the settler's thread when the rows are
  /// committed, and never if that fails. `released` are the keys that have nothing to do any more,
  /// of all that was written in the transaction.
  using WrittenCall = std::function<void(const std::vector<store::ReleasedKey>& released)>;
  void settle(Work work, WrittenCall written);
  /// Reads the parked events that are due. Any thread may call this. `read` is called from the
  /// settler's thread, after everything that was given before is written.
  struct DueQuestion {
    std::int32_t subscription{0};
    store::Holding holding{};
    std::size_t besides{0};  ///< So many more are read, for those that cannot be sent now.
    std::vector<store::AskedRow> asked{};  ///< See store::Progress::due().
    std::function<void(store::DueEvents)> read;
  };
  void read_due(DueQuestion question);
  /// Reads the keys of all parked events, in the same way.
  struct KeysQuestion {
    std::int32_t subscription{0};
    store::Holding holding{};
    std::function<void(store::ParkedKeys)> read;
  };
  void read_keys(KeysQuestion question);
  /// Whether a settlement was committed.
  [[nodiscard]] bool has_written() const { return has_written_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t statements() const {
    return statements_.load(std::memory_order_relaxed);
  }

 private:
  struct Job {
    Work work;
    WrittenCall written;
  };
  using Question = std::variant<DueQuestion, KeysQuestion>;
  void run(const std::stop_token& stop);
  [[nodiscard]] bool write(std::vector<Job> jobs, const std::stop_token& stop);
  void ask(Question question);
  [[nodiscard]] Status answer(const DueQuestion& question);
  [[nodiscard]] Status answer(const KeysQuestion& question);
  [[nodiscard]] Result<std::vector<store::ReleasedKey>> append(const Work& work);

  std::unique_ptr<store::Progress> progress_;
  Totals& totals_;
  std::function<void(const Error&)> failed_;
  std::chrono::steady_clock::time_point flushed_at_{};
  std::atomic<std::uint64_t> statements_{0};
  std::atomic<bool> has_written_{false};

  Mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Job> jobs_ OUTBOX_GUARDED_BY(mutex_);
  std::vector<Question> questions_ OUTBOX_GUARDED_BY(mutex_);

  std::jthread thread_;
};

}  // namespace outbox::relay
