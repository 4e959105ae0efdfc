#include "store/postgres/connection.hpp"

#include <poll.h>

#include <atomic>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/steady.hpp"
#include "pg/connect.hpp"
#include "pg/errors.hpp"
#include "pg/url.hpp"
#include "store/postgres/error_map.hpp"
#include "store/postgres/insert.hpp"

namespace outbox::store::postgres {
namespace {

constexpr int kOldestServer = 140000;

std::atomic<std::uint64_t> all_statements{0};

struct ToParam {
  Param operator()(std::nullptr_t) const { return Param::null(); }
  Param operator()(const sql::Time& time) const { return Param::time_us(time.us); }
  Param operator()(const sql::Bytes& bytes) const { return Param::borrowed(bytes.bytes); }
  Param operator()(std::span<const std::int64_t> numbers) const {
    return Param::int8_array(numbers);
  }
  Param operator()(std::span<const std::string> texts) const {
    ArrayParam array(ArrayParam::Element::text);
    for (const std::string& text : texts) array.add(text);
    return array.take();
  }
  template <class Value>
  Param operator()(const Value& value) const {
    return value;
  }
};

Params make_params(const sql::Params& params) {
  Params all;
  all.reserve(params.size());
  for (const sql::Param& param : params) all.push_back(std::visit(ToParam{}, param));
  return all;
}

/// Converts a value by the type that the server reports.
sql::Cell read_cell(const Rows& rows, int row, int column) {
  enum Type : Oid { kBool = 16, kInt8 = 20, kInt2 = 21, kInt4 = 23, kTime = 1184, kJsonb = 3802 };
  if (rows.is_null(row, column)) return nullptr;
  switch (PQftype(rows.native(), column)) {
    case kBool: return std::int64_t{rows.boolean(row, column)};
    case kInt2: return std::int64_t{rows.int2(row, column)};
    case kInt4: return std::int64_t{rows.int4(row, column)};
    case kInt8: return rows.int8(row, column);
    case kTime: return rows.time_us(row, column);
    case kJsonb: return std::string(rows.bytes(row, column).substr(1));
    default: return rows.text(row, column);
  }
}

}  // namespace

sql::Rows read_cells(const Rows& rows) {
  const int columns = PQnfields(rows.native());
  std::vector<sql::Cell> cells;
  cells.reserve(static_cast<std::size_t>(rows.size()) * static_cast<std::size_t>(columns));
  for (int row = 0; row < rows.size(); ++row) {
    for (int column = 0; column < columns; ++column) cells.push_back(read_cell(rows, row, column));
  }
  return {static_cast<std::size_t>(columns), std::move(cells)};
}

struct Connection::Kept final : KeptConnections::Item {
  explicit Kept(Connection&& its_connection) : connection(std::move(its_connection)) {
    connection.keeper_ = nullptr;  // What is kept is closed when it is destroyed.
  }
  Connection connection;
};

Connection::~Connection() {
  if (keeper_ == nullptr || !is_as_new()) return;
  KeptConnections* const keeper = std::exchange(keeper_, nullptr);
  const KeptConnections::Time opened = opened_;
  const std::string address = address_;
  keeper->give(address, {.item = std::make_unique<Kept>(std::move(*this)), .opened = opened});
}

bool Connection::is_as_new() const noexcept {
  return connection_ != nullptr && !broken() && !failed_ && !synced_ && batch_.empty() &&
         use_prepared_ && PQtransactionStatus(native()) == PQTRANS_IDLE;
}

/// The server may have ended it meanwhile: then there is something to read.
std::optional<Connection> Connection::take_kept(const StoreOptions& options,
                                                KeptConnections& kept) {
  while (true) {
    KeptConnections::Taken taken = kept.take(options.url);
    if (taken.item == nullptr) return {};
    Connection connection = std::move(static_cast<Kept&>(*taken.item).connection);
    pollfd readable{.fd = PQsocket(connection.native()), .events = POLLIN, .revents = 0};
    if (::poll(&readable, 1, 0) > 0) continue;
    connection.keeper_ = &kept;
    connection.opened_ = taken.opened;
    return connection;
  }
}

Result<Connection> Connection::open(const StoreOptions& options, std::string_view purpose,
                                    std::shared_ptr<const Queries> queries) {
  if (!queries) queries = std::make_shared<const Queries>(options.schema);
  KeptConnections* const kept = KeptConnections::of_thread();
  if (kept == nullptr) return open_new(options, purpose, std::move(queries));
  if (auto connection = take_kept(options, *kept)) {
    connection->use(std::move(queries));
    connection->set_deadline(kDeadline);
    connection->decided_by(options.decision);
    return std::move(*connection);
  }
  OUTBOX_TRY(Connection opened, open_new(options, purpose, std::move(queries)));
  opened.keeper_ = kept;
  opened.opened_ = now_steady();
  opened.address_ = options.url;
  return opened;
}

Result<Connection> Connection::open_new(const StoreOptions& options, std::string_view purpose,
                                        std::shared_ptr<const Queries> queries) {
  // This check comes first, since libpq's messages quote what libpq does not understand, which may
  // be a part of the password.
  if (Status status = pg::check_url(options.url); !status) {
    status.error().message = "the store URL " + status.error().message;
    return pass(status);
  }
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
  OUTBOX_TRY(opened.finish());
  opened.decided_by(options.decision);
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
  OUTBOX_TRY(exec(query, std::move(params)));
  return {};
}

Result<Rows> Connection::exec_with(Named settings, const Query& query, Params params) {
  const bool inside = in_transaction();
  if (!inside) send(&Queries::begin);
  send(settings);
  send(query, std::move(params));
  if (!inside) send(&Queries::commit);
  OUTBOX_TRY(auto results, finish());
  return std::move(results[inside ? 1 : 2]);
}

Result<sql::Rows> Connection::exec(sql::Named statement, const sql::Params& params) {
  const Query& query = queries_->of(statement);
  const auto sent = [&]() -> Result<Rows> {
    switch (in_transaction() ? sql::How::plainly : (kStatements.*statement).how) {
      case sql::How::plainly:
      case sql::How::kept: break;
      case sql::How::flushed: return exec_with(&Queries::flushed, query, make_params(params));
      case sql::How::plan_settings:
        return exec_with(&Queries::plan_settings, query, make_params(params));
      case sql::How::no_limits: return exec_with(&Queries::no_limits, query, make_params(params));
      case sql::How::settings: return exec_with(&Queries::settings, query, make_params(params));
    }
    return exec(query, make_params(params));
  };
  OUTBOX_TRY(const Rows rows, sent());
  return read_cells(rows);
}

Status Connection::run_and_write(sql::Named statement, const sql::Params& params,
                                 std::span<const Event> events, std::span<const EventId> ids) {
  send(queries_->of(statement), make_params(params));
  std::vector<Step> steps;
  if (!events.empty()) plan_insert(*queries_, events, ids, steps);
  for (Step& step : steps) send(*step.query, std::move(step.params));
  auto done = finish();
  return done ? Status{} : Status(pass(done));
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
  OUTBOX_TRY(finish());
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
  OUTBOX_TRY(sync());
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
  if (!rows) failed_ = true;
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
