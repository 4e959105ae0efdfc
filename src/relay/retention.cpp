#include "relay/retention.hpp"

#include <utility>

#include "base/error.hpp"

namespace outbox::relay {
namespace {

/// The lease is longer than the removal of a piece takes. When it is over, another process may do
/// the same work, which is safe.
constexpr std::chrono::minutes kLease{5};

/// Removes what is removable in `pass.left`, and returns whether something was removed.
Result<bool> remove_pieces(store::Retention& retention, const EventId& who,
                           const RetentionRules& rules, const OnRemoved& on_removed,
                           const std::stop_token& stop, RetentionPass& pass) {
  bool any = false;
  for (const store::LogPiece& piece : pass.left) {
    if (piece.state != store::LogPiece::State::removable || stop.stop_requested()) continue;
    OUTBOX_TRY(const store::Removal removal, retention.remove(piece, rules.archive, stop));
    if (!removal.removed) {
      ++pass.locked;
      continue;
    }
    any = true;
    ++pass.pieces;
    pass.events += removal.events;
    on_removed(piece, removal);
    OUTBOX_TRY([[maybe_unused]] const bool held, retention.hold(who, kLease));
  }
  return any;
}

Status run_pass(store::Retention& retention, const EventId& who, const RetentionRules& rules,
                const OnRemoved& on_removed, const std::stop_token& stop, RetentionPass& pass) {
  // This is repeated while there is more, because a store may remove only a part of a piece.
  for (bool more = true; more && !stop.stop_requested();) {
    pass.locked = 0;
    OUTBOX_TRY(pass.left, retention.survey(rules.keep));
    OUTBOX_TRY(more, remove_pieces(retention, who, rules, on_removed, stop, pass));
  }
  OUTBOX_TRY(pass.rows, retention.tidy(rules.keep, stop));
  OUTBOX_TRY(retention.tidy_inbox(rules.keep_inbox, stop));
  return retention.tidy_audit(rules.keep_audit, stop);
}

}  // namespace

Result<RetentionPass> remove_history(store::Retention& retention, const EventId& who,
                                     const RetentionRules& rules, const OnRemoved& on_removed,
                                     const std::stop_token& stop) {
  RetentionPass pass;
  OUTBOX_TRY(const bool held, retention.hold(who, kLease));
  pass.elsewhere = !held;
  if (!held) return pass;
  Status status = run_pass(retention, who, rules, on_removed, stop, pass);
  Status released = retention.release(who);
  if (!status) return outbox::pass(status);
  if (!released) return outbox::pass(released);
  return pass;
}

}  // namespace outbox::relay
