// What the relays of a world share: the clock, the log, the store, the destination.
#pragma once

#include <cstdint>
#include <set>

#include "event/key.hpp"
#include "relay/trust_deadline.hpp"
#include "sim/checks.hpp"
#include "sim/log.hpp"
#include "sim/options.hpp"
#include "sim/parked_table.hpp"
#include "sim/random.hpp"
#include "sim/result.hpp"
#include "sim/sink.hpp"
#include "sim/trace.hpp"
#include "store/settlement.hpp"

namespace outbox::sim {

struct Environment {
  explicit Environment(const SimOptions& options_)
      : options(options_),
        random(options_.seed),
        log(random, options_.keys, options_.repeated_ids) {}

  [[nodiscard]] std::uint64_t key_of(std::int64_t seq) const {
    const EventView& view = log.at(seq).view;
    return event::key_hash(view.aggregate_type, view.aggregate_id);
  }

  const SimOptions options;
  Random random;
  SimLog log;
  Topic topic;
  ParkedTable parked{options.dead_blocks};
  Checks checks{options, log, topic, parked};
  store::Cursor persisted{.s1 = "0"};
  std::int64_t generation{0};
  std::set<std::int64_t> poison;
  int down_for{0};  ///< For how many more steps the destination is down.
  relay::TimePoint now{};
  const Trace trace{options.trace, now};
  SimResult result;
};

}  // namespace outbox::sim
