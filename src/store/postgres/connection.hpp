// A connection of our own to PostgreSQL. It sends statements by name and in batches, and has binary
// results, deadlines and transactions.
//
// It works through poolers in transaction mode: nothing here depends on a session. When prepared
// statements are lost because the pooler switched backends, the connection sends unnamed ones from
// then on.
#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/kept_connections.hpp"
#include "store/postgres/pipeline.hpp"
#include "store/postgres/queries.hpp"
#include "store/sql/connection.hpp"
#include "store/store.hpp"

namespace outbox::store::postgres {

using sql::Decision;

/// The rows as the parts in store/sql read them.
[[nodiscard]] sql::Rows read_cells(const Rows& rows);

/// It is used by one thread at a time.
class Connection final : public sql::Connection {
 public:
  /// One of the statements of this connection's schema.
  using Named = Query Queries::*;

  /// Connects within the connect_timeout (5 s per address unless the URL says otherwise) and checks
  /// that the server is PostgreSQL 14 or newer. `purpose` shows in the server's list of connections
  /// after the application's name. If `queries` is null, those of the schema are made. Takes one of
  /// the connections that this thread keeps (store/kept_connections.hpp), if there is one.
  [[nodiscard]] static Result<Connection> open(const StoreOptions& options,
                                               std::string_view purpose,
                                               std::shared_ptr<const Queries> queries = nullptr);

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  Connection(Connection&&) noexcept = default;
  Connection& operator=(Connection&&) noexcept = default;
  /// Gives the connection back to those that are kept, unless something has failed with it.
  ~Connection() override;

  /// Sends one statement and waits for its rows. Outside a transaction the statement is a
  /// transaction of its own.
  [[nodiscard]] Result<Rows> exec(const Query& query, Params params = {});
  [[nodiscard]] Result<Rows> exec(Named query, Params params = {}) {
    return exec(queries().*query, std::move(params));
  }
  /// Sends a statement whose rows do not matter.
  [[nodiscard]] Status run(Named query, Params params = {});
  using sql::Connection::run;
  /// Sends the statement after `settings`, both in one round trip, and in a transaction of their
  /// own unless one is open.
  [[nodiscard]] Result<Rows> exec_with(Named settings, const Query& query, Params params = {});
  [[nodiscard]] Result<Rows> exec_with(Named settings, Named query, Params params = {}) {
    return exec_with(settings, queries().*query, std::move(params));
  }

  /// Runs `body` in a transaction at READ COMMITTED that waits at most 2 s for locks and that the
  /// server ends when we stop in its middle. Rolls back on any failure. Runs `body` a second time
  /// when the first try finds that prepared statements do not work here (error 26000 ends a
  /// transaction).
  [[nodiscard]] Status transact(const std::function<Result<Decision>()>& body) override;

  // For the parts in store/sql.
  [[nodiscard]] Result<sql::Rows> exec(sql::Named statement, const sql::Params& params) override;
  [[nodiscard]] Status run_and_write(sql::Named statement, const sql::Params& params,
                                     std::span<const Event> events,
                                     std::span<const EventId> ids) override;

  // A batch consists of send() for some statements, sync() and collect(). At most one batch is
  // under way.
  void send(const Query& query, Params params = {});
  void send(Named query, Params params = {}) { send(queries().*query, std::move(params)); }
  /// Hands the batch to the network and returns without waiting for results.
  [[nodiscard]] Status sync();
  /// Waits for the results of every statement that was sent, in order. After an error no statement
  /// of the batch has any effect; a transaction that the batch itself began is rolled back.
  [[nodiscard]] Result<std::vector<Rows>> collect();
  /// sync() and collect().
  [[nodiscard]] Result<std::vector<Rows>> finish();
  /// Whether a batch was synced and not collected yet.
  [[nodiscard]] bool pending() const noexcept { return synced_; }

  /// Runs a migration: several statements at once, without parameters or results. Waits without a
  /// deadline.
  [[nodiscard]] Status script(std::string_view what, const std::string& sql);

  /// Ends an open transaction. When that fails, the connection is broken().
  void rollback();
  [[nodiscard]] bool in_transaction() const noexcept;

  [[nodiscard]] const Queries& queries() const noexcept { return *queries_; }
  /// Must not be called while a batch is under way.
  void use(std::shared_ptr<const Queries> queries) { queries_ = std::move(queries); }
  /// How long collect() waits before it gives the connection up. Default: 30 s.
  void set_deadline(std::chrono::milliseconds deadline) noexcept { deadline_ = deadline; }
  /// Whether the connection cannot be used any more.
  [[nodiscard]] bool broken() const noexcept {
    return broken_ || PQstatus(native()) == CONNECTION_BAD;
  }
  /// SQL statements sent so far.
  [[nodiscard]] std::uint64_t statements() const noexcept { return statements_; }
  /// The statements sent by all connections of this process.
  [[nodiscard]] static std::uint64_t statements_of_process() noexcept;
  [[nodiscard]] bool uses_prepared() const noexcept { return use_prepared_; }
  /// For functions that only libpq has (notifications). The connection remains the owner.
  [[nodiscard]] PGconn* native() const noexcept { return connection_.get(); }

 private:
  struct Close {
    void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
  };

  struct Kept;

  Connection(PGconn* connection, std::shared_ptr<const Queries> queries)
      : connection_(connection), queries_(std::move(queries)) {}

  [[nodiscard]] static std::optional<Connection> take_kept(const StoreOptions& options,
                                                           KeptConnections& kept);
  [[nodiscard]] static Result<Connection> open_new(const StoreOptions& options,
                                                   std::string_view purpose,
                                                   std::shared_ptr<const Queries> queries);
  [[nodiscard]] bool is_as_new() const noexcept;

  [[nodiscard]] Status attempt(const std::function<Result<Decision>()>& body);
  [[nodiscard]] Status transmit();
  void count_statements(std::size_t sent);
  [[nodiscard]] Result<std::vector<Rows>> receive();

  std::unique_ptr<PGconn, Close> connection_;
  std::shared_ptr<const Queries> queries_;
  Pipeline pipeline_;
  std::vector<Step> batch_;
  static constexpr std::chrono::milliseconds kDeadline = std::chrono::seconds(30);
  std::chrono::milliseconds deadline_{kDeadline};
  std::uint64_t statements_{0};
  bool use_prepared_{true};
  bool broken_{false};
  bool synced_{false};
  bool batch_began_outside_{true};  ///< No transaction was open when the batch was sent.
  bool failed_{false};              ///< A statement has failed.
  // Of a connection that is kept.
  KeptConnections* keeper_{nullptr};
  KeptConnections::Time opened_{};
  std::string address_{};
};

}  // namespace outbox::store::postgres
