// What came of a world.
#pragma once

#include <cstdint>
#include <string>

namespace outbox::sim {

struct SimResult {
  std::string broken;  ///< The promise, and how; empty: every promise held at every step.
  std::uint64_t committed{0};
  std::uint64_t delivered{0};
  std::uint64_t duplicates{0};
  std::uint64_t crashes{0};
  std::uint64_t takeovers{0};
  std::uint64_t store_losses{0};
  std::uint64_t failures{0};
  std::uint64_t lies{0};
  std::uint64_t stopped{0};  ///< By a rejected event.
  std::uint64_t parked{0};
  std::uint64_t dead{0};
  std::uint64_t refused{0};  ///< By the sink itself, before anything was sent.
  std::uint64_t slow{0};
  std::uint64_t blamed{0};  ///< Parked because they failed again and again.
  std::uint64_t late{0};    ///< A send that ran when its event was set aside was the delivery.
  std::uint64_t outages{0};
  // Of groups:
  std::uint64_t replays{0};
  std::uint64_t replays_resumed{0};
  std::uint64_t replayed{0};   ///< Events sent by them.
  std::uint64_t skipped{0};    ///< Events not sent by them.
  std::uint64_t decisions{0};  ///< Of people, about parked events.
  std::uint64_t claims{0};
  std::uint64_t several_strands{0};  ///< Lanes of several cursors were taken.
  std::uint64_t merges{0};           ///< And came to one again.
  std::uint64_t void_rows{0};
  std::uint64_t database_crashes{0};
  // Of tasks:
  std::uint64_t runs{0};
  std::uint64_t kept{0};         ///< Had a row.
  std::uint64_t recovered{0};    ///< Of dead workers.
  std::uint64_t lost{0};         ///< Told to stop, since another worker had them.
  std::uint64_t runless{0};      ///< Rows that were given back since nothing ran.
  std::uint64_t given_back{0};   ///< At a stop.
  std::uint64_t kills{0};        ///< By handlers.
  std::uint64_t given_away{0};   ///< To any worker, since no thread was free.
  std::uint64_t claimed{0};      ///< Of them, begun by a worker that had one.
  std::uint64_t types_begun{0};  ///< First cursors of a type apart.
  std::uint64_t type_pauses{0};
  std::uint64_t ready_decisions{0};  ///< Of people, about those that are to be claimed.
  std::uint64_t cancelled{0};        ///< By a person, while they ran; and they were not done.
};

}  // namespace outbox::sim
