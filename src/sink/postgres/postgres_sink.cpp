#include "sink/postgres/postgres_sink.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/steady.hpp"
#include "base/units.hpp"
#include "event/headers.hpp"

namespace outbox::sink::postgres {
namespace {

constexpr std::size_t kMostBatchBytes = std::size_t{8} << 20U;
constexpr std::size_t kMostBytesInFlight = std::size_t{32} << 20U;
/// At least as many ids as a batch can add, so that old ids go as fast as new ones come.
constexpr std::size_t kLeastPruned = 1000;

std::size_t count_bytes(const Row& row) {
  std::size_t bytes = 256;
  for (const auto& value : row.values) bytes += value ? value->size() : 0;
  return bytes;
}

std::vector<std::string> names_in(const pg::Rows& rows) {
  return rows.list([&](int row) { return rows.text(row, 0); });
}

std::vector<std::string> list_keys(const Message& message) {
  std::vector<std::string> keys;
  const EventView& event = *message.event;
  if (!event.aggregate_id.empty()) {
    std::string key("a");
    key.append(event.aggregate_type).append(1, '\0').append(event.aggregate_id);
    keys.push_back(std::move(key));
  }
  if (message.key && !message.key->empty()) keys.push_back("m" + std::string(*message.key));
  return keys;
}

}  // namespace

PostgresSink::PostgresSink(PostgresOptions options)
    : ConnectionSink("postgres"),
      options_(std::move(options)),
      places_(options_),
      pruner_(options_.plain.dedup_window, std::max(options_.plain.batch, kLeastPruned)),
      watch_([this] { wake(); }) {}

PostgresSink::~PostgresSink() { PostgresSink::close(); }

SinkTraits PostgresSink::traits() const noexcept {
  return {.name = "postgres",
          .gapless = true,
          .max_batch = 1000,
          .max_in_flight = options_.plain.max_in_flight,
          .attribute_prefix = "ce_"};
}

// ---- opening

Status PostgresSink::open() {
  if (state_ == State::open) return {};
  if (session_ && in_flight_ == 0) {
    work();  // The connection may be lost.
    // The connection is fine: an event was refused.
    if (session_) {
      state_ = State::open;
      return {};
    }
  }
  close();
  OUTBOX_TRY(watch_.start());
  Status connected = connect();
  if (!connected) {
    drop_connection();
    return connected;
  }
  state_ = State::open;
  return {};
}

Status PostgresSink::connect() {
  OUTBOX_TRY(session_, Session::open(options_));
  const TimePoint until = now_steady() + options_.plain.connect_timeout;
  const std::vector<Statement> first{keep_alive(), find_schemas()};
  OUTBOX_TRY(const Answer set, session_->ask(first, until));
  if (set.failure) return fail(describe(*set.failure, session_->address()));
  places_.begin(names_in(set.rows.back()));
  if (options_.remembers()) {
    OUTBOX_TRY(look_now(options_.delivered_table, Look::Kind::delivered, until));
  }
  if (auto table = options_.table.fixed()) {
    OUTBOX_TRY(look_now(std::move(*table), Look::Kind::target, until));
  }
  pruner_ = Pruner(options_.plain.dedup_window, std::max(options_.plain.batch, kLeastPruned));
  warn_about(inspection());
  return {};
}

Status PostgresSink::look_now(TableName table, Look::Kind kind, TimePoint until) {
  Look look(options_, std::move(table), kind, places_);
  for (auto statements = look.next(); !statements.empty(); statements = look.next()) {
    OUTBOX_TRY(const Answer answer, session_->ask(statements, until));
    look.answered(answer, places_);
  }
  return look.status();
}

Inspection PostgresSink::inspection() const {
  Inspection found{.destination = session_->address(),
                   .acked = "the transaction with its row has committed",
                   .duplicates = "never: the table has its id",
                   .order = "of each key in a table"};
  if (options_.remembers()) {
    found.duplicates = fmt::format("only when more than {} lie between",
                                   format_duration(options_.plain.dedup_window));
  }
  if (session_->is_open_to_listeners())
    found.weaknesses.push_back(in_clear("sslmode=verify-full in postgres.url"));
  return found;
}

void PostgresSink::close() noexcept {
  if (in_flight_ > 0)
    lose(fail(Errc::cancelled, Remedy::retry_call, "postgres: the sink was closed").value());
  if (session_ && pruning_) session_->abort();
  drop_connection();
  state_ = State::closed;
}

void PostgresSink::drop_connection() noexcept {
  if (session_) watch_.forget(session_->socket());
  session_.reset();
  look_.reset();
  batch_.reset();
  pruning_ = false;
}

// ---- sending

/// Refuses once, because other outcomes may have told the relay already that the sink failed.
std::size_t PostgresSink::refuse_all(std::span<const Message> messages) {
  return std::exchange(told_, true) ? 0 : ConnectionSink::refuse_all(messages);
}

std::size_t PostgresSink::take(std::span<const Message> messages) {
  std::size_t taken = 0;
  // A refused message ends the call.
  bool goes_on = true;
  while (goes_on && taken < messages.size() && state_ == State::open && has_room())
    goes_on = add(messages[taken++]);
  work();
  watch_socket();
  return taken;
}

bool PostgresSink::has_room() const {
  if (in_flight_ == 0) return true;
  return in_flight_ < options_.plain.max_in_flight && bytes_ < kMostBytesInFlight;
}

Status PostgresSink::check(const Message& message, const TableName& table) const {
  if (message.event == nullptr)
    return fail(Errc::invalid_argument, "postgres: the message has no event");
  return check_name(table);
}

/// Returns false if the sink refuses the message.
bool PostgresSink::add(const Message& message) {
  arena_.clear();
  TableName table;
  if (message.event != nullptr) table = options_.table.render(*message.event, arena_);
  if (Status legal = check(message, table); !legal) {
    refuse(message, Outcome::Kind::rejected, std::move(legal.error()));
    return false;
  }
  Row row = make_row(message, std::move(table));
  ++in_flight_;
  bytes_ += row.bytes;
  queue_.push_back(std::move(row));
  return true;
}

Row PostgresSink::make_row(const Message& message, TableName table) {
  const EventView& event = *message.event;
  Row row{.token = message.token,
          .id = event.id,
          .seq = event.seq,
          .replay = std::string(event::read_replay(event, arena_)),
          .table = std::move(table),
          .values = {},
          .keys = list_keys(message)};
  row.values.reserve(options_.columns.size());
  for (const Column& column : options_.columns) {
    const auto value = column.value(message, arena_);
    row.values.push_back(value ? std::optional<std::string>(*value) : std::nullopt);
  }
  row.bytes = count_bytes(row);
  return row;
}

// ---- working

void PostgresSink::work() {
  while (session_) {
    if (!busy()) begin_next();
    if (!session_) return;
    auto answer = session_->advance();
    if (!answer) return lose(std::move(answer.error()));
    if (!*answer) return;
    progress_ = now_steady();
    answered(**answer);
  }
}

void PostgresSink::submit(const std::vector<Statement>& statements) {
  if (!session_) return;
  if (Status sent = session_->submit(statements); !sent) {
    // The server may have said why before it closed the connection.
    const auto answer = session_->advance();
    lose(answer ? sent.error() : answer.error());
  }
}

void PostgresSink::begin_next() {
  if (next_rows_.empty()) {
    std::size_t bytes = 0;
    while (!queue_.empty() && next_rows_.size() < options_.plain.batch && bytes < kMostBatchBytes) {
      bytes += queue_.front().bytes;
      next_rows_.push_back(std::move(queue_.front()));
      queue_.pop_front();
    }
    places_.trim();
  }
  if (next_rows_.empty()) return;
  if (!pruning_) progress_ = now_steady();
  // Unknown tables are looked for first.
  const auto unknown = std::find_if(next_rows_.begin(), next_rows_.end(),
                                    [this](const Row& row) { return !places_.knows(row.table); });
  if (unknown != next_rows_.end()) {
    look_.emplace(options_, unknown->table, Look::Kind::target, places_);
    return submit(look_->next());
  }
  batch_.emplace(std::exchange(next_rows_, {}), options_.plain.deadline,
                 [this](std::span<const Row* const> rows) { return places_.insert(rows); });
  submit(batch_->next());
}

void PostgresSink::answered(const Answer& answer) {
  if (pruning_) return pruned(answer);
  if (look_) {
    look_->answered(answer, places_);
    const auto statements = look_->next();
    return statements.empty() ? end_look() : submit(statements);
  }
  OUTBOX_CHECK(batch_);
  batch_->answered(answer);
  const auto statements = batch_->next();
  statements.empty() ? end_batch() : submit(statements);
}

void PostgresSink::end_look() {
  const Status status = look_->status();
  look_.reset();
  if (status) return;
  // The destination is at fault for its table, and nothing was sent.
  const Error& error = status.error();
  stop_taking(error);
  for (const Row& row : std::exchange(next_rows_, {}))
    report(row.token, Outcome::Kind::blocked, error);
  return_queue(Outcome::Kind::retry, error);
  drop_connection();
}

void PostgresSink::end_batch() {
  const bool refused = batch_->refused();
  const std::optional<Error> failure =
      batch_->failure() == nullptr ? std::nullopt : std::optional(*batch_->failure());
  settle_batch();
  if (!refused && !failure) return prune_if_due();
  const Error reason =
      failure.value_or(fail(Errc::unavailable, Remedy::retry_call,
                            "postgres: not sent, since an event before it was refused")
                           .value());
  stop_taking(reason);
  told_ = true;
  return_queue(Outcome::Kind::retry, reason);
  // The table may have changed, or another server may take the writes now.
  if (failure) drop_connection();
}

/// Removes old ids, with the next batch right behind. There is no BEGIN, so that no transaction is
/// left open in any case.
void PostgresSink::prune_if_due() {
  if (!options_.remembers() || !pruner_.due(now_steady())) return;
  pruning_ = true;
  submit({limits(options_.plain.deadline),
          prune(places_.delivered(), options_.subscription, options_.plain.dedup_window,
                pruner_.from(), pruner_.chunk())});
}

void PostgresSink::settle_batch() {
  std::vector<Outcome> outcomes;
  batch_->append_outcomes(outcomes);
  for (const Row& row : batch_->rows()) bytes_ -= row.bytes;
  in_flight_ -= outcomes.size();
  for (Outcome& outcome : outcomes) ConnectionSink::report(std::move(outcome));
  batch_.reset();
}

/// A failure is only logged: ids that stay are no event's fault.
void PostgresSink::pruned(const Answer& answer) {
  pruning_ = false;
  if (answer.failure) {
    log::warn("postgres: old ids cannot be removed",
              {{"reason", describe(*answer.failure, options_.delivered_table.shown()).text()}});
    return pruner_.stop();
  }
  const pg::Rows& rows = answer.rows.back();
  pruner_.removed(rows.int8(0, 0), rows.text(0, 1), now_steady());
}

// ---- outcomes

void PostgresSink::advance() {
  work();
  watch_deadline();
  watch_socket();
}

void PostgresSink::report(Token token, Outcome::Kind kind, const Error& error) {
  ConnectionSink::report({.token = token, .kind = kind, .error = error});
  told_ = true;
}

/// Reports what was taken and not sent.
void PostgresSink::return_queue(Outcome::Kind kind, const Error& error) {
  for (const Row& row : std::exchange(next_rows_, {})) report(row.token, kind, error);
  for (const Row& row : std::exchange(queue_, {})) report(row.token, kind, error);
  in_flight_ = batch_ ? batch_->rows().size() : 0;
  if (!batch_) bytes_ = 0;
}

// ---- failing

void PostgresSink::stop_taking(Error reason) {
  if (state_ == State::open) told_ = false;
  ConnectionSink::stop_taking(std::move(reason));
}

/// Gives up the connection. The server may have committed what it received.
void PostgresSink::lose(Error error) {
  if (!session_) return;
  stop_taking(error);
  Error unsent = error;
  unsent.effect = Effect::none;
  error.effect = Effect::unknown;
  if (batch_) {
    for (const Row& row : batch_->rows()) report(row.token, Outcome::Kind::unknown, error);
    batch_.reset();
  }
  return_queue(Outcome::Kind::retry, unsent);
  session_->abort();
  drop_connection();
}

void PostgresSink::watch_deadline() {
  if (!session_ || (!busy() && !pruning_)) return;
  const auto waited = now_steady() - progress_;
  if (waited <= options_.plain.deadline) return;
  lose(fail(Errc::deadline_exceeded, Remedy::reconnect,
            fmt::format("postgres: {}: no answer for {:.1f} s", session_->address(),
                        std::chrono::duration<double>(waited).count()),
            "check the server and the network; what holds locks on the table?")
           .value());
}

/// Watches even while nothing is in progress, because the server may close the connection.
void PostgresSink::watch_socket() {
  if (!session_) return;
  watch_.arm(session_->socket(), {.write = session_->has_unsent()});
}

void PostgresSink::purge() {
  work();
  if (in_flight_ == 0) return;
  lose(fail(Errc::cancelled, Remedy::retry_call, "postgres: the relay gave up").value());
}

}  // namespace outbox::sink::postgres
