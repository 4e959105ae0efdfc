#include <map>

#include "store/history.hpp"

namespace outbox::store {

const char* to_string(LogPiece::State state) noexcept {
  switch (state) {
    case LogPiece::State::removable: return "removable";
    case LogPiece::State::empty: return "empty";
    case LogPiece::State::held: return "held";
    case LogPiece::State::young: return "young";
    case LogPiece::State::in_use: return "in use";
  }
  return "in use";
}

std::vector<Hold> find_holds(const std::vector<LogPiece>& pieces) {
  std::map<std::int32_t, Hold> holds;
  for (const LogPiece& piece : pieces) {
    for (const std::int32_t subscription : piece.held_by) {
      Hold& hold = holds[subscription];
      if (hold.pieces++ == 0) hold.oldest_us = piece.newest_us;
      hold.subscription = subscription;
      hold.bytes += piece.bytes;
    }
  }
  std::vector<Hold> all;
  all.reserve(holds.size());
  for (const auto& [subscription, hold] : holds) all.push_back(hold);
  return all;
}

}  // namespace outbox::store
