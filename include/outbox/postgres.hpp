// outbox/postgres.hpp: enqueueing events in a PostgreSQL transaction.
//
//   PGconn* connection = ...;                        // yours; the schema is made once by: outbox migrate
//   const outbox::postgres::Outbox box;
//   outbox::postgres::Transaction tx(connection);    // BEGIN
//   ... PQexecParams(connection, "UPDATE orders ...") ...
//   box.enqueue(tx, {.aggregate_type = "order", .aggregate_id = "42", .event_type = "OrderPlaced",
//                    .payload = R"({"total": 12.5})"});
//   tx.commit();                                     // the event exists if and only if this succeeds
//
// Events given to a Transaction are staged and written as its last statement, in one network round trip with COMMIT. A
// transaction that you began yourself serves as well: box.enqueue(connection, event) writes at once. A connection outside
// a transaction is refused; anything else does not compile.
//
// Order per key: change (or lock) the aggregate before you enqueue. Transaction does so by itself, because it writes its
// events last. Writers that cannot may set Event::lock_key.
//
// Threads: Outbox: Const methods from any thread. Transaction: One thread at a time, the thread that uses its connection.
// Lifetime: the connection must outlive the Transaction. What is prepared on a connection is forgotten with it (and with
//           PQreset()).
// Errors: enqueue, enqueue_many and Transaction throw outbox::Exception, because a lost event must abort the business
//         transaction. After invalid_argument or too_large the transaction is still usable, nothing was written.
//         commit() with Effect::unknown: the connection broke while COMMIT was under way; look before you repeat.
#pragma once

#include <memory>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

struct pg_conn;
typedef struct pg_conn PGconn;

namespace outbox::postgres {

class Outbox;

/// A transaction on a connection of yours. Statements on that connection belong to it until commit().
class Transaction {
 public:
  /// BEGIN, at the session's default isolation. Throws when it cannot, or when a transaction is open already.
  explicit Transaction(PGconn* connection);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  Transaction(Transaction&&) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  /// Rolls back what was not committed.
  ~Transaction();

  /// Writes the staged events and commits, in one round trip.
  void commit();
  void rollback() noexcept;

  [[nodiscard]] PGconn* connection() const noexcept;

 private:
  friend class Outbox;
  struct State;
  std::unique_ptr<State> state_;
};

struct Options {
  /// The schema of the outbox tables. Default: outbox.
  std::string schema{"outbox"};
  /// Checked before anything is written.
  EventLimits limits{};
  /// For events that do not say whether to take an advisory lock on their key. Default: false.
  bool lock_key{false};
  /// Prepare the INSERT once per connection. Turn off behind a pooler by transaction that does not know protocol-level
  /// prepared statements (PgBouncer before 1.21). Default: true.
  bool prepared_statements{true};
};

/// What a transaction of PostgreSQL can be.
template <class T>
inline constexpr bool is_transaction =
    std::is_same_v<T, Transaction&> || std::is_same_v<std::remove_cvref_t<T>, PGconn*>;

class Outbox {
 public:
  /// Throws when the schema's name is not an identifier.
  explicit Outbox(Options options = {});
  Outbox(const Outbox&) = default;
  Outbox& operator=(const Outbox&) = default;
  Outbox(Outbox&&) noexcept = default;
  Outbox& operator=(Outbox&&) noexcept = default;
  ~Outbox();

  /// Stages the event and returns its id. It is written by Transaction::commit().
  EventId enqueue(Transaction& tx, const Event& event) const;
  /// Writes it in the transaction that you began on this connection. Not in one: Errc::not_in_transaction.
  EventId enqueue(PGconn* connection, const Event& event) const;

  /// Several events, all or none, in one statement; all are checked before the first is written. Ids in the order of the
  /// events.
  std::vector<EventId> enqueue_many(Transaction& tx, std::span<const Event> events) const;
  std::vector<EventId> enqueue_many(PGconn* connection, std::span<const Event> events) const;

  /// Without exceptions.
  [[nodiscard]] Result<EventId> try_enqueue(Transaction& tx, const Event& event) const;
  [[nodiscard]] Result<EventId> try_enqueue(PGconn* connection, const Event& event) const;
  [[nodiscard]] Result<std::vector<EventId>> try_enqueue_many(Transaction& tx, std::span<const Event> events) const;
  [[nodiscard]] Result<std::vector<EventId>> try_enqueue_many(PGconn* connection, std::span<const Event> events) const;

  /// No other type is a transaction of PostgreSQL: not a connection of another store, not a number, not nullptr.
  template <class T>
    requires(!is_transaction<T>)
  EventId enqueue(T&&, const Event&) const = delete;
  template <class T>
    requires(!is_transaction<T>)
  std::vector<EventId> enqueue_many(T&&, std::span<const Event>) const = delete;
  template <class T>
    requires(!is_transaction<T>)
  Result<EventId> try_enqueue(T&&, const Event&) const = delete;
  template <class T>
    requires(!is_transaction<T>)
  Result<std::vector<EventId>> try_enqueue_many(T&&, std::span<const Event>) const = delete;

 private:
  friend class Transaction;
  struct Statements;
  Options options_;
  std::shared_ptr<const Statements> statements_;
};

}  // namespace outbox::postgres
