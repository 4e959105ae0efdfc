// What the processes of a world of groups share.
#pragma once

#include <cstdint>

#include "relay/trust_deadline.hpp"
#include "sim/groups/checks.hpp"
#include "sim/groups/database.hpp"
#include "sim/groups/tables.hpp"
#include "sim/random.hpp"
#include "sim/result.hpp"
#include "sim/sink.hpp"
#include "sim/trace.hpp"

namespace outbox::sim {

struct GroupOptions {
  std::uint64_t seed{1};
  int steps{500};
  unsigned keys{8};
  std::size_t most_relays{3};
  bool gapless{true};
  bool same_machine{true};  ///< That a process is gone is seen at once; otherwise by its lease.
  unsigned filtered_percent{10};
  unsigned fail_percent{2};
  unsigned lie_percent{0};
  // Of 1000 steps:
  unsigned joins{0};
  unsigned leaves{0};
  unsigned crashes{0};
  unsigned pauses{0};   ///< Stopped: SIGSTOP. Its clock goes on.
  unsigned freezes{0};  ///< The same with its clock.
  unsigned jumps{0};    ///< Of the server's clock.
  unsigned lost_connections{0};
  unsigned database_crashes{0};
  bool exact{false};  ///< Nothing happens that excuses a duplicate.
  bool trace{false};
};

struct GroupShared {
  explicit GroupShared(const GroupOptions& options_) : options(options_), random(options_.seed) {}

  [[nodiscard]] relay::TimePoint server_now() const { return now + server_offset; }
  /// The id of an event is its number.
  [[nodiscard]] static std::size_t number_of(const EventId& id) {
    std::uint64_t number = 0;
    for (unsigned byte = 0; byte < 8; ++byte) number |= std::uint64_t{id.bytes[byte]} << (8 * byte);
    return static_cast<std::size_t>(number - 1);
  }

  const GroupOptions options;
  Random random;
  relay::TimePoint now{std::chrono::seconds(1000)};
  relay::TimePoint::duration server_offset{};
  Database database{random, options.keys, options.filtered_percent};
  Tables tables{database};
  Topic topic;
  GroupChecks checks{database, topic, options.exact};
  const Trace trace{options.trace, now};
  SimResult result;
};

}  // namespace outbox::sim
