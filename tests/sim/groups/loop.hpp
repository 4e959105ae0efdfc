// The loop of a subscription (src/relay/subscription_loop.cpp), driven by dice: strands with the relay's own delivery cores.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "relay/delivery_core.hpp"
#include "relay/key_gate.hpp"
#include "relay/sink_state.hpp"
#include "relay/window.hpp"
#include "sim/groups/shared.hpp"
#include "sim/sink.hpp"
#include "store/cursor.hpp"

namespace outbox::sim {

/// What outlives a loop: SinkCache.
struct RetainedSink {
  SimSink sink;
  Token next_token{1};
  std::vector<relay::EventRef> acks{};
};

class SimLoop {
 public:
  struct Job {
    std::size_t strand{0};
    std::vector<store::Settlement> rows;
  };

  SimLoop(GroupShared& world, RetainedSink& retained, const store::Holding& holding,
          const std::vector<store::Strand>& strands, bool gapless);

  void take_page(std::size_t strand, const std::shared_ptr<const store::Page>& page,
                 relay::TimePoint now);
  void written(std::size_t strand) { cores_[strand]->settled(); }
  void step(relay::TimePoint now, bool trusted, std::vector<Job>& jobs);
  /// Sends no more but what fills gaps, and settles.
  void stop(relay::TimePoint now, bool in_order);
  [[nodiscard]] bool finished() const;
  void take_outcomes(relay::TimePoint now);
  /// Returns what is acked and not settled to the sink's cache.
  void end(relay::TimePoint now);
  [[nodiscard]] bool could_merge() const { return could_merge_; }
  [[nodiscard]] bool idle() const;
  [[nodiscard]] std::size_t strands() const { return cores_.size(); }
  [[nodiscard]] bool has_room() const { return window_.has_room(1); }
  [[nodiscard]] bool failed() const { return state_.mode() == relay::Mode::rejected; }
  [[nodiscard]] bool in_flight() const { return state_.in_flight() > 0; }
  [[nodiscard]] std::int64_t generation() const { return holding_.generation; }

 private:
  void send(std::size_t strand, relay::TimePoint now);
  void bring_strands_together();
  [[nodiscard]] bool must_see(std::size_t strand, const store::Page& page) const;

  GroupShared& world_;
  RetainedSink& retained_;
  const store::Holding holding_;
  relay::SinkState state_;
  relay::Window window_;
  relay::KeyGate gate_;
  std::vector<std::unique_ptr<relay::DeliveryCore>> cores_;
  bool meeting_{false};
  bool could_merge_{false};
  std::set<std::size_t> acked_;
};

}  // namespace outbox::sim
