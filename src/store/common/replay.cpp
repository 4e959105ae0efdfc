#include "store/common/replay.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "base/error.hpp"
#include "event/time_text.hpp"

namespace outbox::store {

tl::unexpected<Error> begins_too_early(std::int64_t first, const RetainedLog& log) {
  std::string retained = "everything from seq " + std::to_string(log.first) + " on";
  if (log.first_us != 0) retained += ", written at " + event::time_text(log.first_us);
  return fail(Errc::not_found,
              "the replay begins at seq " + std::to_string(first) +
                  ", before what the log still has: " + retained,
              "begin there, or send what was removed from its archive with --archive DIR");
}

tl::unexpected<Error> another_is_running() {
  return fail(Errc::already_exists, "another replay of this subscription is running",
              "outbox replay --list shows it, outbox replay --stop ID ends it");
}

tl::unexpected<Error> not_stopped(std::int64_t replay) {
  return fail(Errc::not_found, "replay " + std::to_string(replay) + " is not stopped",
              "outbox replay --list shows its state");
}

std::vector<ReplayPlace> places_of(const std::vector<ReplayPlace>& rows, std::int64_t start,
                                   LaneMask lanes) {
  std::map<std::int64_t, LaneMask> at;
  for (unsigned lane = 0; lane < 64; ++lane) {
    const LaneMask bit = LaneMask{1} << lane;
    if ((lanes & bit) == 0) continue;
    std::int64_t position = start;
    for (const ReplayPlace& row : rows) {
      if ((row.lanes & bit) != 0) position = std::max(position, row.position);
    }
    at[position] |= bit;
  }
  std::vector<ReplayPlace> places;
  places.reserve(at.size());
  for (const auto& [position, mask] : at) places.push_back({.lanes = mask, .position = position});
  return places;
}

}  // namespace outbox::store
