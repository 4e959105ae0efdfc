// The loop of a subscription (src/relay/subscription_loop.cpp), driven by random numbers. Its
// strands are the relay's own delivery cores.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "relay/delivery_core.hpp"
#include "relay/key_gate.hpp"
#include "relay/replay.hpp"
#include "relay/retry_core.hpp"
#include "relay/sink_state.hpp"
#include "relay/window.hpp"
#include "sim/groups/shared.hpp"
#include "sim/sink.hpp"
#include "sim/tasks/runner.hpp"
#include "store/settlement.hpp"
#include "store/subscriptions.hpp"
#include "subscription/filter.hpp"

namespace outbox::sim {

/// What outlives a loop, as in SinkCache.
struct RetainedSink {
  SimSink sink;
  std::shared_ptr<SimRunner> runner{};  ///< Runs handlers in place of the sink.
  task::Source source{0};               ///< The runner's number of the subscription.
  Token next_token{1};
  std::vector<relay::EventRef> acks{};
  std::vector<relay::EventRef> retry_acks{};

  [[nodiscard]] Status open() {
    if (runner) return runner->open(source);
    sink.open();
    return {};
  }
  [[nodiscard]] std::vector<Outcome> receive() {
    return runner ? runner->receive(source) : sink.receive();
  }
  void purge() { runner ? runner->purge(source) : sink.purge(); }
  void step() { runner ? runner->step() : sink.step(); }
  void crash() { runner ? runner->crash() : sink.crash(); }
};

class SimLoop {
 public:
  /// The strand that stands for the retries.
  static constexpr std::size_t kRetries = 64;
  struct Job {
    std::size_t strand{0};
    Batch batch;
  };

  SimLoop(GroupShared& world, RetainedSink& retained, store::SubscriptionRow row,
          const store::Holding& holding, const std::vector<store::Strand>& strands,
          std::shared_ptr<relay::ReplayRun> replay);

  void take_page(std::size_t strand, const std::shared_ptr<const store::Page>& page,
                 relay::TimePoint now);
  /// `released` are the keys that have nothing to do any more.
  void written(std::size_t strand, const std::vector<std::uint64_t>& released,
               relay::TimePoint now) {
    if (strand != kRetries) cores_[strand]->settled();
    if (!replay_) {
      for (const std::uint64_t key : released) gate_.released(key);
    }
    if (strand == kRetries) retries_.written(now);
    watch_replay();
  }
  /// A person has changed parked events.
  void parked_changed(relay::TimePoint now) {
    if (!replay_) retries_.changed(now);
  }
  [[nodiscard]] bool reads_keys() const { return !replay_; }
  void keys_read(const store::ParkedKeys& keys) { gate_.replace_stored(keys); }
  /// Like Tenure::retire_changed(): whether the loop must start again. `replay` is the one that
  /// runs now.
  [[nodiscard]] bool differs(const store::SubscriptionRow& row, std::int64_t replay) const;
  [[nodiscard]] bool replays() const { return replay_ != nullptr; }
  /// Does what the feed's thread does. Returns false if the connection is lost.
  [[nodiscard]] bool read_replay() { return replay_->feed->read_round({}).has_value(); }
  /// Whether it waits for the parked events that are due.
  [[nodiscard]] bool asks() const { return asks_; }
  void loaded(store::DueEvents due, relay::TimePoint now) {
    asks_ = false;
    retries_.loaded(std::move(due), now);
  }
  void step(relay::TimePoint now, bool trusted, std::vector<Job>& jobs);
  /// Sends nothing more but what fills gaps (only if `in_order`), and settles.
  void stop(relay::TimePoint now, bool in_order);
  [[nodiscard]] bool finished() const;
  void take_outcomes(relay::TimePoint now);
  /// Returns what is acked and not settled to the sink's cache.
  void end(relay::TimePoint now);
  [[nodiscard]] bool could_merge() const { return could_merge_; }
  [[nodiscard]] bool idle() const;
  [[nodiscard]] std::size_t strands() const { return cores_.size(); }
  [[nodiscard]] bool has_room() const { return window_.has_room(1); }
  [[nodiscard]] const relay::KeyGate& gate() const { return gate_; }
  /// The rows whose state is asked for, because they run elsewhere or are remembered.
  [[nodiscard]] const std::vector<store::AskedRow>& asked() const { return retries_.asked(); }
  [[nodiscard]] bool failed() const { return state_.mode() == relay::Mode::rejected; }
  [[nodiscard]] bool in_flight() const { return state_.in_flight() > 0; }
  [[nodiscard]] const store::Holding& holding() const { return holding_; }
  [[nodiscard]] std::int32_t subscription() const { return row_.id; }

 private:
  class Reader;
  void begin_replay();
  void add_page(std::size_t strand, const std::shared_ptr<const store::Page>& page,
                relay::TimePoint now);
  void send(std::size_t strand, relay::TimePoint now);
  void send_retries(relay::TimePoint now);
  void settle(relay::TimePoint now, std::vector<Job>& jobs);
  /// Returns false if the sink does not take it.
  [[nodiscard]] bool hand_over(Token token, EventView event, std::size_t number,
                               std::size_t attempt);
  void leave_runs_to_owner(relay::TimePoint now);
  void bring_strands_together();
  void watch_replay();
  [[nodiscard]] bool must_see(std::size_t strand, const store::Page& page) const;

  [[nodiscard]] bool replay_differs(std::int64_t running) const;

  GroupShared& world_;
  RetainedSink& retained_;
  const store::SubscriptionRow row_;
  const subscription::Filter filter_;
  const store::Holding holding_;
  const std::shared_ptr<relay::ReplayRun> replay_;
  relay::SinkState state_;
  relay::Window window_;
  relay::KeyGate gate_;
  relay::RetryCore retries_;
  std::vector<std::unique_ptr<relay::DeliveryCore>> cores_;
  std::vector<std::unique_ptr<feed::PageConsumer>> readers_;  ///< Readers of the replay.
  bool replayed_{false};
  bool asks_{false};
  bool meeting_{false};
  bool could_merge_{false};
  std::set<std::size_t> acked_;
  std::set<std::size_t> acked_retries_;
};

}  // namespace outbox::sim
