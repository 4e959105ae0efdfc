// Workers on both stores, for the tests of tasks.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <outbox/worker.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "integration/relay/both_stores.hpp"
#include "store/parked.hpp"
#include "subscription/group.hpp"

namespace outbox::test {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

/// The runs of all handlers of a test, in the order of their ends.
class Runs {
 public:
  struct Run {
    std::string key;
    std::string payload;
    std::size_t attempt{0};
  };
  void add(std::string_view payload, const TaskRun& run) {
    const std::scoped_lock lock(mutex_);
    all_.push_back({std::string(run.key), std::string(payload), run.attempt});
  }
  /// Notes that a run of the key begins. Returns false if another one of the same key runs.
  bool begin(std::string_view key) {
    const std::scoped_lock lock(mutex_);
    return key.empty() || running_.insert(std::string(key)).second;
  }
  void end(std::string_view key) {
    const std::scoped_lock lock(mutex_);
    running_.erase(std::string(key));
  }
  [[nodiscard]] std::vector<Run> all() const {
    const std::scoped_lock lock(mutex_);
    return all_;
  }
  [[nodiscard]] std::size_t count() const { return all().size(); }
  /// The payloads of the runs of a key.
  [[nodiscard]] std::vector<std::string> payloads(const std::string& key) const {
    std::vector<std::string> found;
    for (const Run& run : all()) {
      if (run.key == key) found.push_back(run.payload);
    }
    return found;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Run> all_;
  std::set<std::string> running_;
};

class WorkerTest : public OnBothStores {
 protected:
  /// Makes the handler "slow", whose runs wait for open(), or end when they are told to stop.
  struct Gate {
    explicit Gate(WorkerTest& test) {
      test.handlers_.on("slow", [this, &test](std::string_view payload, const TaskRun& run) {
        ++begun;
        if (!wait(run)) return TaskEnd::failed("was told to stop");
        test.runs_.add(payload, run);
        return TaskEnd::done();
      });
    }
    bool wait(const TaskRun& run) {
      std::unique_lock lock(mutex_);
      if (changed_.wait(lock, run.stop, [this] { return is_open_; })) return true;
      return ++told, false;
    }
    void open() { set(true); }
    void close() { set(false); }

    std::atomic<int> begun{0};
    std::atomic<int> told{0};

   private:
    void set(bool is_open) {
      {
        const std::scoped_lock lock(mutex_);
        is_open_ = is_open;
      }
      changed_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable_any changed_;
    bool is_open_{false};
  };
  void enqueue(const std::string& type, const std::vector<std::string>& payloads,
               const std::string& key = {}, const std::string& queue = "mail",
               std::size_t priority = 2) const {
    std::vector<Event> events;
    for (const std::string& payload : payloads)
      events.push_back(to_event({.queue = queue,
                                 .type = type,
                                 .payload = payload,
                                 .key = key,
                                 .priority = priority,
                                 .content_type = "text/plain"}));
    const auto written = store_->writer().value()->write(events);
    ASSERT_TRUE(written) << written.error().text();
  }
  /// Adds a handler that notes its runs.
  void note(const std::string& type) {
    handlers_.on(type, [this](std::string_view payload, const TaskRun& run) {
      EXPECT_TRUE(runs_.begin(run.key)) << "two of a key at once";
      runs_.add(payload, run);
      runs_.end(run.key);
    });
  }
  [[nodiscard]] WorkerOptions options() const {
    return {.relay = {.store_url = url_},
            .queues = {"mail"},
            .threads = 4,
            .delays = {std::chrono::milliseconds(20), std::chrono::milliseconds(20)},
            .jitter = 0,
            .unknown_type_pause = milliseconds(50)};
  }
  std::unique_ptr<Worker> start(WorkerOptions options) {
    auto worker = Worker::create(std::move(options), handlers_);
    EXPECT_TRUE(worker) << worker.error().text();
    const Status started = (*worker)->start();
    EXPECT_TRUE(started) << started.error().text();
    return std::move(*worker);
  }
  std::unique_ptr<Worker> start() { return start(options()); }

  [[nodiscard]] std::vector<store::ParkedListing> parked(
      std::optional<store::ParkedState> state = {}) const {
    return store_->parked_events().value()->list({.state = state}, 1000, false).value();
  }
  /// The number of workers that own lanes of the queue.
  [[nodiscard]] std::size_t owners() const {
    std::set<EventId> all;
    const auto fleet = store_->lane_owners(EventId{}).value()->look().value();
    for (const auto& group : fleet.groups) {
      if (group.name != subscription::custom_group("task.mail")) continue;
      for (const auto& lanes : group.owners) {
        if (lanes.owner) all.insert(*lanes.owner);
      }
    }
    return all.size();
  }
  [[nodiscard]] bool all_is_done() const {
    const auto catalog = store_->catalog().value();
    const auto rows = catalog->subscriptions().value();
    return !rows.empty() && parked().empty() &&
           std::all_of(rows.begin(), rows.end(), [&](const auto& row) {
             return catalog->progress(row, 1).value().pending == 0;
           });
  }

  Runs runs_;
  Handlers handlers_;
};

}  // namespace outbox::test
