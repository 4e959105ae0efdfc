// Parked events as people see and change them.
#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/process.hpp"
#include "store/parked.hpp"
#include "store/sql/audit.hpp"
#include "store/sql/parts.hpp"
#include "store/sqlite/clock.hpp"
#include "store/sqlite/key_row.hpp"
#include "store/sqlite/parking.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/queries.hpp"
#include "store/stored_subscription.hpp"
#include "store/text.hpp"

namespace outbox::store::sqlite {
namespace {

constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();

class SqliteParkedEvents final : public sql::ParkedEvents {
 public:
  explicit SqliteParkedEvents(std::unique_ptr<Connection> connection)
      : sql::ParkedEvents(std::move(connection)), connection_(static_cast<Connection&>(db())) {}

  [[nodiscard]] Result<std::size_t> retry(std::int32_t subscription,
                                          std::span<const std::int64_t> seqs,
                                          bool keep_attempts) override {
    return change(subscription, seqs, [&](std::int64_t seq) -> Result<bool> {
      OUTBOX_TRY(connection_.run(query::kForgetExecuteAt, subscription, seq));
      return send_again(subscription, seq, keep_attempts, wall_us());
    });
  }

  [[nodiscard]] Result<std::size_t> discard(std::int32_t subscription,
                                            std::span<const std::int64_t> seqs,
                                            std::string_view actor,
                                            std::string_view reason) override {
    return change(subscription, seqs, [&](std::int64_t seq) {
      return discard_event(connection_, subscription, seq, actor, reason, wall_us());
    });
  }

  [[nodiscard]] Status edit(const ParkedEdit& edit) override {
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    OUTBOX_TRY(const std::string_view word, replace(edit));
    OUTBOX_TRY(sql::edit_status(word, edit));
    OUTBOX_TRY(connection_.run(query::kNoteParkedChange, edit.subscription));
    OUTBOX_TRY(sql::record(connection_, {.id = edit.subscription}, 1));
    return transaction.commit();
  }

 private:
  /// Returns "edited", or the reason why the event cannot be edited.
  [[nodiscard]] Result<std::string_view> replace(const ParkedEdit& edit) {
    const std::int64_t now = wall_us();
    std::int64_t attempts = 0;
    {
      OUTBOX_TRY(const Statement row, connection_.query(query::kParkedLife, edit.subscription,
                                                        edit.seq, to_bytes(edit.id)));
      if (!row.has_row()) return "gone";
      const ParkedState state = parse_parked_state(row.bytes(0));
      if (state == ParkedState::waiting) return "waiting";
      if (state == ParkedState::running || state == ParkedState::ready) return "due";
      OUTBOX_TRY(const bool served, has_live_owner(edit.subscription));
      if (state == ParkedState::retrying && row.integer(2) <= now && served) return "due";
      attempts = row.integer(1);
    }
    OUTBOX_TRY(connection_.run(query::kEndEdited, edit.subscription, edit.seq,
                               to_bytes(edit.new_id), edit.actor, edit.reason, now, attempts));
    OUTBOX_TRY(connection_.run(query::kEditParked, edit.subscription, edit.seq,
                               to_bytes(edit.new_id), edit.event_type, edit.payload,
                               edit.content_type, edit.headers));
    // The corrected copy takes over the unique key of the task.
    OUTBOX_TRY(connection_.run(query::kHandOverUnique, to_bytes(edit.id), to_bytes(edit.new_id)));
    OUTBOX_TRY(send_again(edit.subscription, edit.seq, false, now, true));
    return "edited";
  }

  /// Returns false if the event is not parked. `corrected` says that the error at the key does not
  /// hold any more for its first event.
  [[nodiscard]] Result<bool> send_again(std::int64_t subscription, std::int64_t seq,
                                        bool keep_attempts, std::int64_t now,
                                        bool corrected = false) {
    OUTBOX_TRY(auto event, read_facts(connection_, subscription, seq));
    if (!event) return false;
    OUTBOX_TRY(KeyRow key, KeyRow::read(connection_, subscription, event->key));
    OUTBOX_TRY(const auto first_alive, key.first());
    const bool was_dead = event->facts.dead;
    const std::int64_t first = std::min(first_alive.value_or(seq), was_dead ? seq : kLast);
    key.takes(seq);
    if (!was_dead && !key.key()) key.key().emplace();  // somebody changed rows by hand
    OUTBOX_TRY(key.release(seq));
    law::retry(key.key(), event->facts, seq, first, keep_attempts, now);
    if (corrected && first == seq) key.key()->error.clear();
    Status status = was_dead ? write_facts(connection_, subscription, seq, event->facts) : Status{};
    if (status) status = key.write();
    return status ? Result<bool>(true) : pass(status);
  }

  [[nodiscard]] Result<bool> has_live_owner(std::int64_t subscription) {
    OUTBOX_TRY(const Statement owner, connection_.query(query::kOwnerOf, subscription));
    return owner.has_row() && !is_dead(read_member(owner), this_process(), monotonic_us());
  }

  /// `one(seq)` changes one event and returns false if the event is not there. Afterwards the relay
  /// is told.
  template <class One>
  [[nodiscard]] Result<std::size_t> change(std::int32_t subscription,
                                           std::span<const std::int64_t> seqs, One one) {
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    std::size_t changed = 0;
    for (const std::int64_t seq : seqs) {
      OUTBOX_TRY(const bool there, one(seq));
      changed += there ? 1 : 0;
    }
    OUTBOX_TRY(connection_.run(query::kNoteParkedChange, subscription));
    if (changed > 0) {
      OUTBOX_TRY(
          sql::record(connection_, {.id = subscription}, static_cast<std::int64_t>(changed)));
    }
    OUTBOX_TRY(transaction.commit());
    return changed;
  }

  Connection& connection_;
};

}  // namespace

std::unique_ptr<ParkedEvents> make_parked_events(Connection connection) {
  return std::make_unique<SqliteParkedEvents>(std::make_unique<Connection>(std::move(connection)));
}

}  // namespace outbox::store::sqlite
