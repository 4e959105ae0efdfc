#include "store/sqlite/key_row.hpp"

#include <string_view>
#include <tuple>

#include "base/error.hpp"
#include "store/sqlite/queries.hpp"
#include "store/text.hpp"

namespace outbox::store::sqlite {
namespace {

/// The columns that write() writes. query::kCancelRun writes who cancelled a run.
auto tie_columns(const law::Key& key) {
  return std::tie(key.version, key.attempts, key.due_at, key.error, key.blocked_by, key.run_seq,
                  key.worker, key.token, key.begun_at);
}

bool same(const std::optional<law::Key>& a, const std::optional<law::Key>& b) {
  return a && b ? tie_columns(*a) == tie_columns(*b) : a.has_value() == b.has_value();
}

law::Key read_key(const Statement& row) {
  const auto integer = [&](int column) {
    return row.is_null(column) ? std::nullopt : std::optional(row.integer(column));
  };
  const auto text = [&](int column) {
    return row.is_null(column) ? std::nullopt : std::optional(row.text(column));
  };
  law::Key key{.version = row.integer(0),
               .attempts = static_cast<std::size_t>(row.integer(1)),
               .due_at = row.integer(2),
               .error = row.text(3),
               .blocked_by = integer(4),
               .run_seq = integer(5),
               .token = row.integer(7),
               .begun_at = integer(8),
               .cancelled_by = text(9),
               .cancel_reason = text(10)};
  if (!row.is_null(6)) key.worker = to_id(row.bytes(6));
  return key;
}

}  // namespace

Result<std::optional<ParkedFacts>> read_facts(Connection& connection, std::int64_t subscription,
                                              std::int64_t seq) {
  OUTBOX_TRY(const Statement row, connection.query(query::kParkedFacts, subscription, seq));
  if (!row.has_row()) return std::nullopt;
  return ParkedFacts{.id = to_id(row.bytes(0)),
                     .key = static_cast<std::uint64_t>(row.integer(1)),
                     .facts = {.dead = row.integer(2) != 0,
                               .blocks = row.integer(7) != 0,
                               .attempts = static_cast<std::size_t>(row.integer(3)),
                               .error = row.text(6),
                               .token = row.integer(4),
                               .version = row.integer(5)}};
}

Status write_facts(Connection& connection, std::int64_t subscription, std::int64_t seq,
                   const law::Facts& facts) {
  return connection.run(query::kWriteFacts, subscription, seq, std::int64_t{facts.dead},
                        static_cast<std::int64_t>(facts.attempts), facts.token, facts.version,
                        facts.error, std::int64_t{facts.blocks});
}

Result<KeyRow> KeyRow::read(Connection& connection, std::int64_t subscription,
                            std::uint64_t number) {
  KeyRow key(connection, subscription, number);
  OUTBOX_TRY(const Statement row,
             connection.query(query::kParkedKey, subscription, static_cast<std::int64_t>(number)));
  if (!row.has_row()) return key;
  key.key_ = read_key(row);
  key.written_ = key.key_;
  key.solo_ = row.integer(11) != 0;
  key.written_solo_ = key.solo_;
  return key;
}

Result<std::optional<std::int64_t>> KeyRow::first() const {
  OUTBOX_TRY(const Statement row, connection_->query(query::kFirstParked, subscription_,
                                                     static_cast<std::int64_t>(number_)));
  return row.has_row() ? std::optional(row.integer(0)) : std::nullopt;
}

Status KeyRow::release(std::int64_t seq) {
  if (!key_ || key_->blocked_by != seq) return {};
  OUTBOX_TRY(const Statement row, connection_->query(query::kNextBlock, subscription_,
                                                     static_cast<std::int64_t>(number_), seq));
  law::release(key_, seq, row.has_row() ? std::optional(row.integer(0)) : std::nullopt);
  return {};
}

Status KeyRow::left(std::int64_t seq, bool was_dead, bool by_person, std::int64_t now) {
  if (!key_) return write();
  OUTBOX_TRY(const auto first_left, first());
  law::left(key_, seq, first_left, was_dead, by_person, now);
  return write();
}

Status KeyRow::write() {
  if (same(key_, written_) && (!key_ || solo_ == written_solo_)) return {};
  written_ = key_;
  written_solo_ = solo_;
  const auto number = static_cast<std::int64_t>(number_);
  if (!key_) return connection_->run(query::kRemoveParkedKey, subscription_, number);
  const law::Key& key = *key_;
  return connection_->run(query::kWriteParkedKey, subscription_, number, std::int64_t{solo_},
                          key.version, static_cast<std::int64_t>(key.attempts), key.due_at,
                          key.blocked_by.value_or(0), key.run_seq.value_or(0),
                          key.worker ? to_bytes(*key.worker) : std::string_view(), key.token,
                          key.begun_at.value_or(0), key.error);
}

}  // namespace outbox::store::sqlite
