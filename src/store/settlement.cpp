#include "store/settlement.hpp"

namespace outbox::store {

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

}  // namespace outbox::store
