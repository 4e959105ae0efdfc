#include "store/settlement.hpp"

#include "store/parked.hpp"
#include "store/replay.hpp"

namespace outbox::store {

const char* to_string(ReplayState state) noexcept {
  switch (state) {
    case ReplayState::loading: return "loading";
    case ReplayState::running: return "running";
    case ReplayState::stopped: return "stopped";
    case ReplayState::done: return "done";
  }
  return "stopped";
}

ReplayState parse_replay_state(std::string_view word) noexcept {
  for (const auto state : {ReplayState::loading, ReplayState::running, ReplayState::done}) {
    if (word == to_string(state)) return state;
  }
  return ReplayState::stopped;
}

const char* to_string(SettlementKind kind) noexcept {
  switch (kind) {
    case SettlementKind::settle: return "settle";
    case SettlementKind::claim: return "claim";
    case SettlementKind::mark: return "mark";
    case SettlementKind::retry: return "retry";
    case SettlementKind::reset: return "reset";
  }
  return "settle";
}

SettlementKind parse_settlement_kind(std::string_view word) noexcept {
  for (const auto kind : {SettlementKind::settle, SettlementKind::claim, SettlementKind::retry,
                          SettlementKind::reset}) {
    if (word == to_string(kind)) return kind;
  }
  return SettlementKind::mark;
}

const char* to_string(ParkedState state) noexcept {
  switch (state) {
    case ParkedState::retrying: return "retrying";
    case ParkedState::waiting: return "waiting";
    case ParkedState::dead: return "dead";
    case ParkedState::running: return "running";
    case ParkedState::ready: return "ready";
  }
  return "dead";
}

const char* to_string(ParkedOutcome outcome) noexcept {
  switch (outcome) {
    case ParkedOutcome::delivered: return "delivered";
    case ParkedOutcome::discarded: return "discarded";
    case ParkedOutcome::edited: return "edited";
  }
  return "discarded";
}

}  // namespace outbox::store
