// The loop of a subscription: the relay's own (src/relay/loop_core.cpp), whose sink and driver are
// played by dice.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "relay/loop_core.hpp"
#include "sim/groups/shared.hpp"
#include "sim/sink.hpp"
#include "sim/tasks/runner.hpp"
#include "store/subscriptions.hpp"

namespace outbox::sim {

/// What outlives a loop: SinkCache.
struct RetainedSink {
  SimSink sink;
  std::shared_ptr<SimRunner> runner{};  ///< In place of the sink: handlers.
  task::Source source{0};               ///< Whose tasks these are, to it.
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
  [[nodiscard]] bool rings() const { return runner ? runner->rings(source) : sink.rings(); }
  void purge() { runner ? runner->purge(source) : sink.purge(); }
  void step() { runner ? runner->step() : sink.step(); }
  void crash() { runner ? runner->crash() : sink.crash(); }
};

class SimLoop final : private relay::LoopPorts {
 public:
  /// What the settler is asked to write.
  struct Job {
    std::optional<std::size_t> strand{};
    Batch batch;
  };
  /// Of the process, which outlives the loop.
  struct Links {
    const EventId& relay;
    const relay::TimePoint::duration& clock;
    const relay::TrustDeadline& trust;
    std::deque<Job>& jobs;
  };

  SimLoop(GroupShared& world, RetainedSink& retained, const Links& links,
          store::SubscriptionRow row, const store::Holding& holding,
          const std::vector<store::Strand>& strands, std::shared_ptr<relay::ReplayRun> replay);
  ~SimLoop() override;

  // ---- what the other threads tell it

  void take_page(std::size_t strand, const std::shared_ptr<const store::Page>& page);
  /// What the thread of a replay's feed does. False: the connection is lost.
  [[nodiscard]] bool read_replay() { return core_->replay()->feed->read_round({}).has_value(); }
  /// `released`: keys that have nothing to do any more.
  void written(const Job& job, const std::vector<std::uint64_t>& released);
  void due_read(store::DueEvents due);
  void keys_read(const store::ParkedKeys& keys);
  /// A person has changed parked events.
  void parked_changed();
  void stop(relay::TimePoint::duration grace, bool settle);

  // ---- the thread

  /// What it does when it wakes up, if it does.
  void step();
  [[nodiscard]] bool is_over() { return core_->is_over(now()); }
  /// Returns what is acked and not settled to the sink's cache.
  void end();

  /// Tenure::retire_changed(). `replay`: the one that runs now.
  [[nodiscard]] bool differs(const store::SubscriptionRow& row, std::int64_t replay) const;
  [[nodiscard]] bool replays() const { return core_->replay() != nullptr; }
  [[nodiscard]] bool replayed() const { return replayed_; }
  [[nodiscard]] bool is_distrusted() const { return distrusted_; }
  /// It waits for the parked events that are due, or for the keys of all.
  [[nodiscard]] bool asks_for_due() const { return asks_for_due_; }
  [[nodiscard]] bool asks_for_keys() const { return asks_for_keys_; }
  /// What runs elsewhere is asked for, too.
  [[nodiscard]] const std::vector<store::AskedRow>& asked() const { return asked_; }
  [[nodiscard]] bool has_room() const { return core_->strand(0).has_room(1); }
  [[nodiscard]] bool in_flight() const { return core_->sink_state().in_flight() > 0; }
  [[nodiscard]] const relay::LoopCore& core() const { return *core_; }

 private:
  class Client;
  class Handlers;
  class Reader;

  void check_lease() const;
  void check_send(const Message& message);
  void note_acks();
  /// The core has its driver, or the sink, do this.
  void acts(const char* what);
  [[nodiscard]] bool replay_differs(std::int64_t running) const;

  // LoopPorts
  [[nodiscard]] relay::TimePoint now() override { return world_.now + links_.clock; }
  [[nodiscard]] bool trusted(relay::TimePoint now) override { return links_.trust.holds(now); }
  void distrusted() override { distrusted_ = true; }
  void room() override {}  // the reader looks by itself
  void replay_done() override { replayed_ = true; }
  void write(Batch batch, std::optional<std::size_t> strand) override;
  void read_due(std::size_t besides, const std::vector<store::AskedRow>& asked) override;
  void read_keys() override;
  [[nodiscard]] std::optional<std::vector<std::int64_t>> try_range(
      const store::Trials::Range& /*range*/) override {
    return {};
  }
  void culprit_found(const EventView& /*event*/, std::size_t /*deaths*/) override {}
  void end_trial(const std::vector<std::int64_t>& /*keep*/,
                 std::optional<std::size_t> /*tried*/) override {}

  GroupShared& world_;
  RetainedSink& retained_;
  const Links links_;
  std::unique_ptr<Sink> sink_;
  std::unique_ptr<relay::LoopCore> core_;
  std::vector<std::unique_ptr<Reader>> readers_;  ///< Of the replay.
  std::vector<store::AskedRow> asked_;
  bool rung_{true};
  relay::TimePoint next_at_{};
  relay::TimePoint stepped_at_{};
  bool sleeps_{false};  ///< There was no reason for this step.
  bool distrusted_{false};
  bool replayed_{false};
  bool asks_for_due_{false};
  bool asks_for_keys_{false};
  std::set<std::size_t> acked_;
  std::set<std::size_t> acked_retries_;
};

}  // namespace outbox::sim
