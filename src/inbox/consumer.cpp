// The facade and its thread: a batch from the source goes into the store in one transaction, and is
// acknowledged. After any failure the source is closed and opened again, so that what was not
// acknowledged comes again (docs/design/consumers.md).
#include <algorithm>
#include <chrono>
#include <outbox/consumer.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "base/backoff.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/outage.hpp"
#include "base/steady.hpp"
#include "base/text.hpp"
#include "base/thread.hpp"
#include "event/task_queue.hpp"
#include "inbox/message.hpp"
#include "source/registry.hpp"
#include "store/store.hpp"

namespace outbox {
namespace {

using namespace std::chrono_literals;

/// How long receive() waits for a message. A stop takes effect after at most this time.
constexpr std::chrono::milliseconds kWait{100};
/// How often the length of the queue and the lag are looked at.
constexpr std::chrono::seconds kLook{1};
/// How often a transaction is tried again that another one was in the way of.
constexpr int kAttempts = 5;
constexpr BackoffPolicy kReconnect{.first = 200ms, .longest = 10s};

}  // namespace

class Consumer::Reading {
 public:
  Reading(ConsumerOptions options, inbox::MessageReader reader,
          std::unique_ptr<source::Source> source)
      : options_(std::move(options)), reader_(std::move(reader)), source_(std::move(source)) {
    report_.name = options_.consumer.name;
  }

  [[nodiscard]] Status check() const {
    OUTBOX_TRY(const auto store, open_store());
    return store->check();
  }

  void start() {
    if (thread_.joinable()) return;
    thread_ = start_thread("ob-consume", [this](const std::stop_token& stop) { run(stop); });
  }
  void request_stop() noexcept { thread_.request_stop(); }
  void stop() {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] ConsumerReport report() const {
    const MutexLock lock(mutex_);
    ConsumerReport report = report_;
    if (report.state != State::stopped)
      report.silent = std::chrono::duration_cast<std::chrono::milliseconds>(now_steady() - began_);
    return report;
  }

 private:
  using State = ConsumerReport::State;
  using TimePoint = std::chrono::steady_clock::time_point;

  void run(const std::stop_token& stop) {
    int failures = 0;
    while (!stop.stop_requested()) {
      Status status = connect();
      while (status && !stop.stop_requested()) {
        failures = 0;
        status = turn();
      }
      disconnect();
      if (status) break;
      note_failure(status.error());
      sleep_for(backoff(kReconnect, ++failures, reinterpret_cast<std::uintptr_t>(this)), stop);
    }
    set_state(State::stopped);
  }

  // ---- connections

  [[nodiscard]] Result<std::unique_ptr<store::Store>> open_store() const {
    return store::open_store(
        {.url = options_.store_url, .schema = options_.schema, .application = "outbox consumer"});
  }

  [[nodiscard]] Status connect() {
    set_state(State::connecting);
    OUTBOX_TRY(store_, open_store());
    OUTBOX_TRY(store_->check());
    OUTBOX_TRY(catalog_, store_->catalog());
    OUTBOX_TRY(inbox_, store_->inbox());
    look_at_ = {};
    OUTBOX_TRY(source_->open());
    set_state(State::reading);
    return {};
  }

  void disconnect() {
    source_->close();
    inbox_.reset();
    catalog_.reset();
    store_.reset();
  }

  // ---- a batch

  [[nodiscard]] Status turn() {
    if (now_steady() >= look_at_) OUTBOX_TRY(look());
    received_.clear();
    const std::size_t wanted = paused_ ? 0 : options_.consumer.batch;
    OUTBOX_TRY(source_->receive({.messages = wanted, .wait = kWait}, received_));
    if (received_.empty()) {
      note_success();
      return {};
    }
    OUTBOX_TRY(const auto counts, write());
    OUTBOX_TRY(source_->acknowledge(received_));
    note(counts);
    return {};
  }

  struct Counts {
    std::uint64_t first{0};
    std::uint64_t again{0};
    std::uint64_t older{0};
    std::uint64_t unreadable{0};
  };

  [[nodiscard]] Result<Counts> write() {
    std::vector<store::InboxMessage> messages;
    std::vector<std::string> unreadable;
    messages.reserve(received_.size());
    for (source::Received& one : received_) {
      // What acknowledge() needs stays.
      source::Received copy = std::move(one);
      one.channel = copy.channel;
      one.place = copy.place;
      one.tag = copy.tag;
      one.part = copy.part;
      auto read = reader_.read(std::move(copy));
      messages.push_back(std::move(read.message));
      unreadable.push_back(std::move(read.unreadable));
    }
    OUTBOX_TRY(const auto arrivals, receive(messages));
    Counts counts;
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      switch (arrivals[i]) {
        case store::Arrival::again: ++counts.again; break;
        case store::Arrival::older: ++counts.older; break;
        case store::Arrival::first:
          ++(unreadable[i].empty() ? counts.first : counts.unreadable);
          if (!unreadable[i].empty()) log_unreadable(messages[i], unreadable[i]);
          break;
      }
    }
    return counts;
  }

  /// Tries again where another transaction was in the way.
  [[nodiscard]] Result<std::vector<store::Arrival>> receive(
      std::span<const store::InboxMessage> messages) {
    for (int attempt = 1;; ++attempt) {
      auto arrivals =
          inbox_->receive(options_.consumer.name, messages, options_.consumer.skip_older);
      const bool conflict = !arrivals && (arrivals.error().remedy == Remedy::retry_transaction ||
                                          arrivals.error().remedy == Remedy::retry_call);
      if (!conflict || attempt == kAttempts) return arrivals;
    }
  }

  void log_unreadable(const store::InboxMessage& message, const std::string& reason) {
    const auto left_out = unreadable_.failed(reason, now_steady());
    if (!left_out) return;
    log::error("a message cannot be understood, it is stored as a dead task",
               {{"consumer", options_.consumer.name},
                {"place", message.place},
                {"reason", reason},
                {"task", message.task.id->str()},
                {"not_logged", *left_out}});
  }

  // ---- the queue and the lag

  [[nodiscard]] Status look() {
    look_at_ = now_steady() + kLook;
    const auto lag = source_->lag();
    {
      const MutexLock lock(mutex_);
      if (lag) report_.lag = lag;
    }
    OUTBOX_TRY(const std::int64_t pending, count_pending());
    const auto most = static_cast<std::int64_t>(options_.consumer.max_pending);
    const bool pause = paused_ ? pending > most / 2 : pending > most;
    if (pause && !paused_) {
      log::info("the queue is long, the consumer pauses",
                {{"consumer", options_.consumer.name}, {"queue", options_.consumer.queue}});
    } else if (paused_ && !pause) {
      log::info("the consumer reads again",
                {{"consumer", options_.consumer.name}, {"queue", options_.consumer.queue}});
    }
    paused_ = pause;
    set_state(pause ? State::paused : State::reading);
    return {};
  }

  /// The tasks that no worker has taken. Before the queue has had a worker there is no subscription
  /// that counts them, and then the consumer does not pause.
  [[nodiscard]] Result<std::int64_t> count_pending() {
    OUTBOX_TRY(const auto all, catalog_->subscriptions());
    const std::string name = event::subscription_of_queue(options_.consumer.queue);
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const auto& row) { return row.spec.name == name; });
    if (found == all.end()) return 0;
    OUTBOX_TRY(
        const auto progress,
        catalog_->progress(*found, static_cast<std::int64_t>(options_.consumer.max_pending) + 1));
    return progress.pending;
  }

  // ---- the report

  void set_state(State state) {
    const MutexLock lock(mutex_);
    report_.state = state;
    began_ = now_steady();
  }

  void note(const Counts& counts) {
    note_success();
    const MutexLock lock(mutex_);
    report_.received_new += counts.first;
    report_.duplicates += counts.again;
    report_.older += counts.older;
    report_.unreadable += counts.unreadable;
  }

  void note_success() {
    if (const auto over = outage_.works(now_steady())) {
      log::info("the consumer works again", {{"consumer", options_.consumer.name},
                                             {"after_s", in_seconds(over->lasted)},
                                             {"failures", over->failures}});
    }
    const MutexLock lock(mutex_);
    report_.last_error.clear();
    began_ = now_steady();
  }

  void note_failure(const Error& error) {
    {
      const MutexLock lock(mutex_);
      report_.state = State::connecting;
      report_.last_error = error.text();
    }
    const auto left_out = outage_.failed(error.message, now_steady());
    if (!left_out) return;
    log::warn("the consumer cannot read, it tries again", {{"consumer", options_.consumer.name},
                                                           {"reason", error.text()},
                                                           {"not_logged", *left_out}});
  }

  const ConsumerOptions options_;
  const inbox::MessageReader reader_;

  // Used by the thread only.
  const std::unique_ptr<source::Source> source_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<store::Catalog> catalog_;
  std::unique_ptr<store::Inbox> inbox_;
  std::vector<source::Received> received_;
  TimePoint look_at_{};
  bool paused_{false};
  Outage outage_;
  Outage unreadable_;

  mutable Mutex mutex_;
  ConsumerReport report_ OUTBOX_GUARDED_BY(mutex_);
  TimePoint began_ OUTBOX_GUARDED_BY(mutex_){now_steady()};  ///< The last turn.

  std::jthread thread_;
};

Result<std::unique_ptr<Consumer>> Consumer::create(ConsumerOptions options) {
  OUTBOX_TRY(validate(options.consumer));
  OUTBOX_TRY(auto reader, inbox::MessageReader::make(options.consumer));
  OUTBOX_TRY(auto source, source::make_source(options.consumer));
  return std::unique_ptr<Consumer>(new Consumer(
      std::make_unique<Reading>(std::move(options), std::move(reader), std::move(source))));
}

Consumer::Consumer(std::unique_ptr<Reading> reading) : reading_(std::move(reading)) {}

Consumer::~Consumer() { stop(); }

Status Consumer::start() {
  OUTBOX_TRY(reading_->check());
  reading_->start();
  return {};
}

void Consumer::request_stop() noexcept { reading_->request_stop(); }

void Consumer::stop() { reading_->stop(); }

ConsumerReport Consumer::report() const { return reading_->report(); }

}  // namespace outbox
