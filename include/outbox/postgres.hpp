// outbox/postgres.hpp: enqueueing events in a PostgreSQL transaction.
//
//   PGconn* connection = ...;                // yours; the schema once by: outbox migrate --store postgresql://...
//   const outbox::postgres::Outbox box;
//   outbox::postgres::Transaction tx(connection);   // BEGIN
//   ... UPDATE orders ... on connection ...
//   box.enqueue(tx, {.aggregate_type = "order", .aggregate_id = "42", .event_type = "OrderPlaced",
//                    .payload = R"({"total": 12.5})"});
//   tx.commit();                             // the event exists if and only if this succeeds
//
// Events given to a Transaction are written as its last statement, in one round trip with COMMIT. That also keeps the order
// of a key: by then the transaction has changed, and so locked, the aggregate. In a transaction that you began yourself, call
// box.enqueue(connection, event); change (or lock) the aggregate first, then enqueue. A connection outside a transaction is
// refused; anything else does not compile.
//
// Until then the events are in memory only, so ROLLBACK TO SAVEPOINT does not take back what was enqueued since the savepoint.
// With savepoints, flush() before SAVEPOINT and before ROLLBACK TO, or enqueue on the connection.
//
// Threads: Outbox: Const methods from any thread. Transaction: One thread at a time, the thread that uses its connection.
// Lifetime: the connection must outlive the Transaction. Statements are prepared once per connection and forgotten when it
//           is reset or finished; behind a pooler that shares connections none are.
// Errors: enqueue, enqueue_many, task and Transaction throw outbox::Exception, because a lost event must abort the business
//         transaction. After invalid_argument or too_large nothing was sent and the transaction is still usable; otherwise
//         Remedy says what to redo. commit() with Effect::unknown: the connection broke while COMMIT was under way.
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <outbox/task.hpp>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

struct pg_conn;
typedef struct pg_conn PGconn;  // as in libpq-fe.h

namespace outbox::postgres {

enum class Isolation { database_default, read_committed, repeatable_read, serializable };

/// A transaction on a connection of yours. Statements on that connection belong to it until commit(). Events are not part of a
/// savepoint until they are written (see above).
class Transaction {
 public:
  /// BEGIN. Throws when it cannot, or when the connection is not idle: a transaction is open, or a command under way.
  explicit Transaction(PGconn* connection, Isolation isolation = Isolation::database_default);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  Transaction(Transaction&&) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  /// rollback().
  ~Transaction();

  [[nodiscard]] PGconn* connection() const noexcept;

  /// Writes now what was enqueued so far, in one round trip: before a SAVEPOINT, so that rolling back to it leaves these
  /// events, and after what belongs to it, so that rolling back takes those with it. Throws as enqueue does; what was not
  /// written stays for the next flush() or commit().
  void flush();
  /// Writes the events and commits. Throws when it fails. After invalid_argument (a command under way, pipeline mode, the
  /// client encoding) nothing was sent and the transaction is still usable; otherwise Effect::none says that nothing
  /// happened and the transaction is rolled back.
  void commit();
  /// Ends pipeline mode if it is on, and rolls back. When that fails the connection is shut down, which rolls back as well.
  void rollback() noexcept;

 private:
  friend class Outbox;
  struct State;
  std::unique_ptr<State> state_;
};

/// Lets Outbox accept a session type of yours:
///
///   template <> struct outbox::postgres::Adapter<MySession> {
///     static PGconn* connection(MySession& session) { return session.native(); }
///   };
///
/// The connection is checked to be inside a transaction, each time.
template <class Native>
struct Adapter;

template <class T>
concept Adapted = requires(std::remove_cvref_t<T>& native) {
  { Adapter<std::remove_cvref_t<T>>::connection(native) } -> std::same_as<PGconn*>;
};

struct Options {
  /// Schema of the outbox tables. Default: outbox.
  std::string schema{"outbox"};
  /// Checked before anything is sent.
  EventLimits limits{};
};

/// Neither a transaction of PostgreSQL nor a connection to it.
template <class T>
concept NoTransaction = !std::is_same_v<T, Transaction&> &&
                        !std::is_same_v<std::remove_cvref_t<T>, PGconn*> && !Adapted<T>;

class Outbox {
 public:
  /// Throws when the schema's name is not valid.
  explicit Outbox(const Options& options = {});

  /// The event will be written by tx.commit(). Returns its id.
  EventId enqueue(Transaction& tx, const Event& event) const;
  /// Writes the event now, in the transaction that you began on this connection. Outside one: Errc::not_in_transaction,
  /// nothing is written.
  EventId enqueue(PGconn* connection, const Event& event) const;

  /// Several events, all or none; all are checked before the first is written. Ids in the order of the events.
  std::vector<EventId> enqueue_many(Transaction& tx, std::span<const Event> events) const;
  std::vector<EventId> enqueue_many(PGconn* connection, std::span<const Event> events) const;

  /// Without exceptions.
  [[nodiscard]] Result<EventId> try_enqueue(Transaction& tx, const Event& event) const;
  [[nodiscard]] Result<EventId> try_enqueue(PGconn* connection, const Event& event) const;
  [[nodiscard]] Result<std::vector<EventId>> try_enqueue_many(Transaction& tx,
                                                              std::span<const Event> events) const;
  [[nodiscard]] Result<std::vector<EventId>> try_enqueue_many(PGconn* connection,
                                                              std::span<const Event> events) const;

  /// For consumers and handlers of tasks, in the transaction of their effect: true the first time that the consumer gets this message,
  /// false when its effect was committed before. Waits for another transaction that has just received it.
  bool receive(Transaction& tx, std::string_view consumer, std::string_view message_id) const;
  bool receive(PGconn* connection, std::string_view consumer, std::string_view message_id) const;
  /// Used by enqueue_task(): gives the task, which has an id, its unique key. Returns the id of the task that has it, or none.
  [[nodiscard]] std::optional<EventId> claim_unique(Transaction& tx, const Task& task) const;
  [[nodiscard]] std::optional<EventId> claim_unique(PGconn* connection, const Task& task) const;
  /// What has become of a task (outbox/task.hpp); none: there is none with this id. One statement, in the transaction that is open, or
  /// outside of any. A task that tx.commit() has not written yet is not there.
  [[nodiscard]] std::optional<TaskStatus> task(Transaction& tx, const EventId& id) const;
  [[nodiscard]] std::optional<TaskStatus> task(PGconn* connection, const EventId& id) const;
  /// Without exceptions.
  [[nodiscard]] Result<std::optional<TaskStatus>> try_task(PGconn* connection,
                                                           const EventId& id) const;

  /// With a session type of yours that has an Adapter.
  template <Adapted T>
  [[nodiscard]] std::optional<TaskStatus> task(T&& session, const EventId& id) const {
    return task(Adapter<std::remove_cvref_t<T>>::connection(session), id);
  }
  template <Adapted T>
  EventId enqueue(T&& session, const Event& event) const {
    return enqueue(Adapter<std::remove_cvref_t<T>>::connection(session), event);
  }
  template <Adapted T>
  bool receive(T&& session, std::string_view consumer, std::string_view message_id) const {
    return receive(Adapter<std::remove_cvref_t<T>>::connection(session), consumer, message_id);
  }
  template <Adapted T>
  [[nodiscard]] std::optional<EventId> claim_unique(T&& session, const Task& task) const {
    return claim_unique(Adapter<std::remove_cvref_t<T>>::connection(session), task);
  }
  template <Adapted T>
  std::vector<EventId> enqueue_many(T&& session, std::span<const Event> events) const {
    return enqueue_many(Adapter<std::remove_cvref_t<T>>::connection(session), events);
  }
  template <Adapted T>
  [[nodiscard]] Result<EventId> try_enqueue(T&& session, const Event& event) const {
    return try_enqueue(Adapter<std::remove_cvref_t<T>>::connection(session), event);
  }
  template <Adapted T>
  [[nodiscard]] Result<std::vector<EventId>> try_enqueue_many(T&& session,
                                                              std::span<const Event> events) const {
    return try_enqueue_many(Adapter<std::remove_cvref_t<T>>::connection(session), events);
  }

  /// No other type is a transaction of PostgreSQL: not a connection of another store, not a number, not nullptr.
  template <NoTransaction T>
  EventId enqueue(T&&, const Event&) const = delete;
  template <NoTransaction T>
  std::vector<EventId> enqueue_many(T&&, std::span<const Event>) const = delete;
  template <NoTransaction T>
  Result<EventId> try_enqueue(T&&, const Event&) const = delete;
  template <NoTransaction T>
  Result<std::vector<EventId>> try_enqueue_many(T&&, std::span<const Event>) const = delete;
  template <NoTransaction T>
  std::optional<TaskStatus> task(T&&, const EventId&) const = delete;

 private:
  friend class Transaction;
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace outbox::postgres
