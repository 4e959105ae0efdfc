// Inserts events into tables of a PostgreSQL database: one transaction per batch, one after the
// other over one connection. The ids of the events are committed with them, so that none is
// inserted twice. See docs/sinks/postgres.md, and docs/design/sinks.md for the states.
//
// The sink is gapless: a batch is one transaction, and the next batch is sent only after the COMMIT
// of the one before was confirmed. A batch that fails returns everything behind it, and the sink
// takes nothing until it is opened again. Nothing of a refused event's key follows it (batch.hpp).
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <outbox/sink.hpp>
#include <string>
#include <vector>

#include "event/arena.hpp"
#include "sink/network_sink.hpp"
#include "sink/postgres/batch.hpp"
#include "sink/postgres/config.hpp"
#include "sink/postgres/places.hpp"
#include "sink/postgres/pruner.hpp"
#include "sink/postgres/session.hpp"
#include "sink/postgres/table_name.hpp"
#include "sink/socket_watch.hpp"

namespace outbox::sink::postgres {

class PostgresSink final : public ConnectionSink {
 public:
  explicit PostgresSink(PostgresOptions options);
  ~PostgresSink() override;

  [[nodiscard]] SinkTraits traits() const noexcept override;
  [[nodiscard]] Status open() override;
  void purge() override;
  void close() noexcept override;
  [[nodiscard]] Inspection inspection() const override;

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  void advance() override;
  [[nodiscard]] std::size_t take(std::span<const Message> messages) override;
  [[nodiscard]] std::size_t refuse_all(std::span<const Message> messages) override;

  [[nodiscard]] Status connect();
  [[nodiscard]] Status look_now(TableName table, Look::Kind kind, TimePoint until);

  [[nodiscard]] bool has_room() const;
  [[nodiscard]] Status check(const Message& message, const TableName& table) const;
  [[nodiscard]] bool add(const Message& message);
  [[nodiscard]] Row make_row(const Message& message, TableName table);

  /// Begins and continues the work as far as the server has answered.
  void work();
  [[nodiscard]] bool busy() const { return look_ || batch_; }
  void begin_next();
  void answered(const Answer& answer);
  void end_look();
  void end_batch();
  void prune_if_due();
  void pruned(const Answer& answer);
  void submit(const std::vector<Statement>& statements);

  void watch_deadline();
  void watch_socket();
  void stop_taking(Error reason);
  void lose(Error error);
  void drop_connection() noexcept;
  void settle_batch();
  void return_queue(Outcome::Kind kind, const Error& error);
  void report(Token token, Outcome::Kind kind, const Error& error);

  const PostgresOptions options_;
  Places places_;
  Pruner pruner_;

  std::unique_ptr<Session> session_;
  std::deque<Row> queue_;
  std::vector<Row> next_rows_;  ///< Rows of the batch whose tables are looked up.
  std::optional<Look> look_;
  std::optional<Batch> batch_;
  bool pruning_{false};  ///< Whether old ids are being removed, which the next answer is about.
  std::size_t in_flight_{0};
  std::size_t bytes_{0};  ///< The bytes of the events in flight.
  bool told_{false};      ///< Whether an outcome has told the relay that the sink failed.
  /// When the last answer came, or when something was sent while nothing was in progress.
  TimePoint progress_{};
  event::Arena arena_;
  SocketWatch watch_;
};

}  // namespace outbox::sink::postgres
