// Which relay may deliver which lanes.
#pragma once

#include <chrono>
#include <cstdint>
#include <outbox/error.hpp>
#include <string>

#include "store/cursor.hpp"
#include "store/part.hpp"

namespace outbox::store {

/// One thread at a time. Today one relay owns all lanes.
class Membership : public Part {
 public:
  struct Standing {
    LaneMask lanes{0};  ///< Owned by this relay.
    std::int64_t generation{0};
    std::string other;  ///< When another relay owns the lanes: its name, for the log.

    [[nodiscard]] bool owns() const noexcept { return lanes != 0; }
  };

  /// Registers this relay, or renews its lease, and takes the lanes when no live relay owns them. Taking over raises the
  /// generation and appends a claim for every subscription, in one flushed transaction.
  [[nodiscard]] virtual Result<Standing> keep(std::chrono::milliseconds lease) = 0;
  /// keep() would take the lanes now: the owner gave them back, or its process ran on this machine and has ended. Cheap;
  /// called often while waiting.
  [[nodiscard]] virtual Result<bool> vacant() = 0;
  /// Gives the lanes back and removes this relay.
  [[nodiscard]] virtual Status leave() = 0;
};

}  // namespace outbox::store
