// What happens in a world of one relay at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/hash.hpp"

namespace outbox::sim {

struct SimOptions {
  std::uint64_t seed{1};
  int steps{600};
  bool gapless{true};
  unsigned keys{6};
  unsigned crash_percent{1};
  unsigned takeover_percent{1};
  unsigned fail_percent{3};
  /// The connection to the store breaks, and the relay continues with what it remembers.
  unsigned store_loss_percent{0};
  unsigned filtered_percent{10};
  bool poison{false};  ///< One event is rejected for good, which stops the subscription.
  /// So many of 100 events are rejected, some of them for good, and are parked.
  unsigned reject_percent{0};
  /// So many of 100 events are refused by the sink before it sends anything, either a few times or
  /// for good.
  unsigned refuse_percent{0};
  /// So many of 100 events fail again and again, some for good; so many others take long.
  unsigned sick_percent{0};
  unsigned slow_percent{0};
  /// In so many of 1000 steps the destination goes down for a while.
  unsigned outage_permille{0};
  bool dead_blocks{false};
  std::size_t window{60};
  unsigned lie_percent{0};   ///< The sink reports twice, late, and what it never got.
  bool exact{false};         ///< Nothing happens that excuses a duplicate.
  bool repeated_ids{false};  ///< The writer supplies ids that are not unique.
  bool trace{false};
  /// No settlement is ever due by its count or its interval.
  bool lazy_settling{false};

  /// Whether the filter of the subscription matches the event.
  [[nodiscard]] bool wanted(std::int64_t seq) const {
    return splitmix64(static_cast<std::uint64_t>(seq)) % 100 >= filtered_percent;
  }
};

}  // namespace outbox::sim
