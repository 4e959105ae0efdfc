// One pass of retention (docs/design/retention.md) removes the history that may go. The relay and
// `outbox prune` use it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <stop_token>
#include <string>
#include <vector>

#include "store/history.hpp"

namespace outbox::relay {

struct RetentionRules {
  std::chrono::milliseconds keep{0};
  std::string archive{};  ///< A folder; empty if nothing is archived.
  /// How long messages that consumers have received stay in the inbox.
  std::chrono::milliseconds keep_inbox{std::chrono::hours(24 * 30)};
  /// How long the record of what people changed stays.
  std::chrono::milliseconds keep_audit{std::chrono::hours(24 * 400)};
};

struct RetentionPass {
  bool elsewhere{false};  ///< Another process removes history now, so nothing was done.
  std::int64_t pieces{0};
  std::int64_t events{0};
  std::int64_t rows{0};    ///< Settlements and ends of parked events.
  std::int64_t locked{0};  ///< Pieces that something kept locked. The next pass tries again.
  std::vector<store::LogPiece> left;
};

/// Called after each piece that was removed.
using OnRemoved = std::function<void(const store::LogPiece&, const store::Removal&)>;

/// `who` identifies this process.
[[nodiscard]] Result<RetentionPass> remove_history(store::Retention& retention, const EventId& who,
                                                   const RetentionRules& rules,
                                                   const OnRemoved& on_removed,
                                                   const std::stop_token& stop);

}  // namespace outbox::relay
