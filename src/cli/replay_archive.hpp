// `outbox replay --archive`: sends events that were removed from the log, from the files that
// retention wrote of them.
#pragma once

#include <cstdint>
#include <functional>
#include <outbox/event.hpp>
#include <string>

#include "base/signals.hpp"
#include "store/replay.hpp"

namespace outbox::cli {

/// What a replay would send.
struct ReplayCount {
  std::int64_t events{0};
  std::int64_t held{0};  ///< Events that are parked now, or that a person gave up.
  std::int64_t first{0};
  std::int64_t last{0};
  std::int64_t first_us{0};
  std::int64_t last_us{0};

  void add(const EventView& event);
};

using Chosen = std::function<bool(const EventView&)>;

[[nodiscard]] ReplayCount count_archive(const std::string& directory, const Chosen& chosen);
/// Starts the replay and copies its events into the store. Returns the id of the replay. A signal
/// ends the verb, and leaves nothing of the replay.
[[nodiscard]] std::int64_t load_archive(const std::string& directory, const Chosen& chosen,
                                        store::Replay replay, store::Replays& replays,
                                        const Signals& signals);

}  // namespace outbox::cli
