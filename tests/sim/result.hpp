// The result of a world.
#pragma once

#include <cstdint>
#include <string>

namespace outbox::sim {

struct SimResult {
  std::string broken;  ///< The broken promise, and how; empty if every promise held.
  std::uint64_t committed{0};
  std::uint64_t delivered{0};
  std::uint64_t duplicates{0};
  std::uint64_t crashes{0};
  std::uint64_t takeovers{0};
  std::uint64_t store_losses{0};
  std::uint64_t failures{0};
  std::uint64_t lies{0};
  std::uint64_t stopped{0};  ///< Whether a rejected event stopped it.
  std::uint64_t parked{0};
  std::uint64_t dead{0};
  std::uint64_t refused{0};  ///< Refused by the sink itself, before anything was sent.
  std::uint64_t slow{0};
  std::uint64_t blamed{0};  ///< Events parked because they failed again and again.
  std::uint64_t late{0};    ///< Delivered by a send that ran when the event was set aside.
  std::uint64_t outages{0};
  // In worlds of groups:
  std::uint64_t replays{0};
  std::uint64_t replays_resumed{0};
  std::uint64_t replayed{0};   ///< Events sent by replays.
  std::uint64_t skipped{0};    ///< Events not sent by replays.
  std::uint64_t decisions{0};  ///< Decisions of people about parked events.
  std::uint64_t claims{0};
  std::uint64_t several_strands{0};  ///< A relay took lanes at several cursors.
  std::uint64_t merges{0};           ///< Several strands came to one cursor.
  std::uint64_t void_rows{0};
  std::uint64_t database_crashes{0};
  // In worlds of tasks:
  std::uint64_t runs{0};
  std::uint64_t kept{0};         ///< Runs that had a row.
  std::uint64_t recovered{0};    ///< Runs recovered from dead workers.
  std::uint64_t lost{0};         ///< Runs told to stop, since another worker had them.
  std::uint64_t runless{0};      ///< Rows given back, since nothing ran.
  std::uint64_t given_back{0};   ///< Runs given back at a stop.
  std::uint64_t kills{0};        ///< Workers killed by handlers.
  std::uint64_t given_away{0};   ///< Tasks given to any worker, since no thread was free.
  std::uint64_t claimed{0};      ///< Of these, begun by a worker that had a free thread.
  std::uint64_t types_begun{0};  ///< First cursors of a type set apart.
  std::uint64_t type_pauses{0};
  std::uint64_t ready_decisions{0};  ///< Decisions of people about tasks that are to be claimed.
  std::uint64_t cancelled{0};        ///< Tasks cancelled by a person while they ran, and not done.
};

}  // namespace outbox::sim
