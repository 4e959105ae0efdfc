// A relay's row among the relays of this outbox, and its lease (docs/design/groups.md).
#pragma once

#include <chrono>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <string>
#include <vector>

#include "store/part.hpp"

namespace outbox::store {

/// Who a relay is. The id stays the same when it comes back after it lost its connection.
struct RelayIdentity {
  EventId id{EventId::generate()};
  std::string name;
  std::vector<std::string> groups{"*"};  ///< What it serves (event/group.hpp).
};

/// One thread at a time.
class Membership : public Part {
 public:
  /// Registers this relay, or renews its lease. False: another relay took this one for dead meanwhile; it is registered again and
  /// owns nothing.
  [[nodiscard]] virtual Result<bool> keep(std::chrono::milliseconds lease) = 0;
  /// Gives back all its lanes and removes the row.
  [[nodiscard]] virtual Status leave() = 0;
};

}  // namespace outbox::store
