#include "store/postgres/connection.hpp"

#include <atomic>

#include "base/error.hpp"
#include "base/log.hpp"
#include "pg/connect.hpp"
#include "pg/errors.hpp"
#include "pg/url.hpp"
#include "store/postgres/error_map.hpp"

namespace outbox::store::postgres {
namespace {

constexpr int kOldestServer = 140000;

std::atomic<std::uint64_t> all_statements{0};

}  // namespace

Result<Connection> Connection::open(const StoreOptions& options, std::string_view purpose,
                                    std::shared_ptr<const Queries> queries) {
  // First: libpq's messages quote what it does not understand, which may be a part of the password.
  if (Status status = pg::check_url(options.url); !status) {
    status.error().message = "the store URL " + status.error().message;
    return pass(status);
  }
  if (!queries) queries = std::make_shared<const Queries>(options.schema);
  Connection opened(pg::connect(options.url, options.application + " " + std::string(purpose)),
                    std::move(queries));
  PGconn* const connection = opened.native();
  if (connection == nullptr || PQstatus(connection) != CONNECTION_OK)
    return fail(pg::failed_connect(connection));
  if (PQserverVersion(connection) < kOldestServer) {
    return fail(
        Errc::unsupported,
        std::string("the server is PostgreSQL ") + PQparameterStatus(connection, "server_version"),
        "PostgreSQL 14 or newer is needed");
  }
  if (PQsetnonblocking(connection, 1) != 0) return fail(pg::lost_connection(connection, "connect"));
  for (const auto query : {&Queries::session, &Queries::no_session_limits})
    opened.send(query, {PQbackendPID(connection)});
  if (auto set = opened.finish(); !set) return pass(set);
  return opened;
}

bool Connection::in_transaction() const noexcept {
  const auto status = PQtransactionStatus(native());
  return status == PQTRANS_INTRANS || status == PQTRANS_INERROR;
}

Result<Rows> Connection::exec(const Query& query, Params params) {
  OUTBOX_CHECK(batch_.empty());
  send(query, std::move(params));
  OUTBOX_TRY(auto rows, finish());
  return std::move(rows.front());
}

Status Connection::run(Named query, Params params) {
  OUTBOX_TRY([[maybe_unused]] const Rows rows, exec(query, std::move(params)));
  return {};
}

Result<Rows> Connection::exec_with(Named settings, const Query& query, Params params) {
  send(&Queries::begin);
  send(settings);
  send(query, std::move(params));
  send(&Queries::commit);
  OUTBOX_TRY(auto results, finish());
  return std::move(results[2]);
}

Status Connection::transact(const std::function<Result<Decision>()>& body) {
  for (;;) {
    const bool prepared_before = use_prepared_;
    Status status = attempt(body);
    rollback();
    if (status || use_prepared_ == prepared_before) return status;
  }
}

Status Connection::attempt(const std::function<Result<Decision>()>& body) {
  send(&Queries::begin);
  send(&Queries::limits);
  if (auto begun = finish(); !begun) return pass(begun);
  OUTBOX_TRY(const Decision decision, body());
  if (decision == Decision::rollback) return {};
  OUTBOX_TRY(const Rows commit, exec(&Queries::commit));
  return check_commit(commit);
}

void Connection::send(const Query& query, Params params) {
  OUTBOX_CHECK(!synced_);
  batch_.push_back(Step{.query = &query, .params = std::move(params)});
}

Result<std::vector<Rows>> Connection::finish() {
  if (Status status = sync(); !status) return pass(status);
  return collect();
}

Status Connection::sync() {
  OUTBOX_CHECK(!synced_ && !batch_.empty());
  batch_began_outside_ = !in_transaction();
  Status status = transmit();
  synced_ = status.has_value();
  if (!synced_) batch_.clear();
  return status;
}

void Connection::count_statements(std::size_t sent) {
  statements_ += sent;
  all_statements.fetch_add(sent, std::memory_order_relaxed);
}

std::uint64_t Connection::statements_of_process() noexcept {
  return all_statements.load(std::memory_order_relaxed);
}

Status Connection::transmit() {
  if (broken_) return fail(pg::lost_connection(native(), batch_.front().query->what));
  count_statements(batch_.size());
  Status sent = pipeline_.send(native(), batch_, use_prepared_);
  broken_ = pipeline_.lost();
  return sent;
}

Result<std::vector<Rows>> Connection::receive() {
  auto rows = pipeline_.collect(native(), batch_, deadline_);
  broken_ = pipeline_.lost();
  return rows;
}

Result<std::vector<Rows>> Connection::collect() {
  OUTBOX_CHECK(synced_);
  synced_ = false;
  auto rows = receive();
  if (!rows && batch_began_outside_) rollback();
  if (!rows && use_prepared_ && blames_prepared(rows.error())) {
    use_prepared_ = false;
    pipeline_.forget();
    log::info("prepared statements do not survive between transactions, they are not used");
    if (batch_began_outside_ && !broken()) {
      Status again = transmit();
      rows = again ? receive() : Result<std::vector<Rows>>(pass(again));
      if (!rows) rollback();
    } else if (!broken()) {
      rows.error().remedy = Remedy::retry_transaction;
    }
  }
  batch_.clear();
  return rows;
}

Status Connection::script(std::string_view what, const std::string& sql) {
  if (broken()) return fail(pg::lost_connection(native(), what));
  count_statements(1);
  const Rows result(PQexec(native(), sql.c_str()));
  const auto status = PQresultStatus(result.native());
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return {};
  return fail(map_result(result.native(), native(), what));
}

void Connection::rollback() {
  if (broken() || !in_transaction()) return;
  static const Query query{.what = "roll back", .sql = "ROLLBACK", .handle = {}};
  const Step step{.query = &query};
  count_statements(1);
  const bool done = pipeline_.send(native(), std::span(&step, 1), false) &&
                    pipeline_.collect(native(), std::span(&step, 1), deadline_);
  broken_ = !done || in_transaction();
}

}  // namespace outbox::store::postgres
