// outbox/pqxx.hpp: enqueueing in a transaction of libpqxx (6 or 7). Link outbox::pqxx.
//
//   pqxx::work tx(connection);
//   tx.exec("UPDATE orders ...");
//   const outbox::libpqxx::Outbox box;
//   box.enqueue(tx, {.aggregate_type = "order", .aggregate_id = "42", .event_type = "OrderPlaced",
//                    .payload = R"({"total": 12.5})"});
//   tx.commit();                             // the event exists if and only if this succeeds
//
// The event is written at once, by outbox.enqueue(): change (or lock) the aggregate first, then enqueue. It is part of a pqxx::subtransaction
// that it is enqueued in. A pqxx::nontransaction does not compile. Tasks: outbox::enqueue_task(box, tx, task).
//
// Threads: Outbox: Const methods from any thread. The transaction: One thread at a time.
// Lifetime: nothing is kept with the connection.
// Errors: throws outbox::Exception, as outbox/postgres.hpp does, from what libpqxx throws. After invalid_argument or too_large of a field
//         nothing was sent and the transaction is still usable; not_in_transaction: it has ended, or a statement of it had failed. The payload_limit of the session holds, too.
#pragma once

#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <outbox/postgres_sql.hpp>
#include <outbox/task.hpp>
#include <pqxx/pqxx>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace outbox::libpqxx {

class Outbox {
 public:
  /// Throws when the schema's name is not valid.
  explicit Outbox(const postgres::Options& options = {}) : statements_(options) {}

  /// Writes the event in the transaction and returns its id.
  EventId enqueue(::pqxx::dbtransaction& tx, const Event& event) const {
    auto [id, call] = statements_.enqueue(event);
    write(tx, call);
    return id;
  }

  /// All are checked before the first is written. One round trip each. Ids in the order of the events.
  std::vector<EventId> enqueue_many(::pqxx::dbtransaction& tx,
                                    std::span<const Event> events) const {
    std::vector<EventId> ids;
    for (const auto& [id, call] : statements_.enqueue_many(events)) {
      write(tx, call);
      ids.push_back(id);
    }
    return ids;
  }

  /// For consumers, in the transaction of their effect: true the first time that the consumer gets this message.
  bool receive(::pqxx::dbtransaction& tx, std::string_view consumer,
               std::string_view message_id) const {
    return row(run(tx, "receive", statements_.receive(consumer, message_id))).as<bool>();
  }

  /// Used by outbox::enqueue_task().
  [[nodiscard]] std::optional<EventId> claim_unique(::pqxx::dbtransaction& tx,
                                                    const Task& task) const {
    const ::pqxx::field holder = row(run(tx, "enqueue", statements_.claim_unique(task)));
    if (holder.is_null()) return std::nullopt;
    return postgres::holder_of_key(holder.as<std::string>(), task);
  }

 private:
  static void write(::pqxx::dbtransaction& tx, const postgres::Call& call) {
    (void)row(run(tx, "enqueue", call));
  }

  /// By exec(): with exec_params() libpqxx 6 does not begin a subtransaction, and the event would outlive it.
  static ::pqxx::result run(::pqxx::dbtransaction& tx, std::string_view what,
                            const postgres::Call& call) {
    try {
      return tx.exec(quoted(tx, call));
    } catch (const ::pqxx::argument_error&) {
      throw Exception(postgres::wrong_encoding());
    } catch (const ::pqxx::sql_error& error) {
      throw Exception(postgres::error_of(error.sqlstate(), what, error.what()));
    } catch (const ::pqxx::broken_connection& error) {
      throw Exception(postgres::error_of("", what, error.what()));
    } catch (const ::pqxx::usage_error& error) {
      throw Exception({.code = Errc::not_in_transaction,
                       .remedy = Remedy::fix,
                       .effect = Effect::none,
                       .message = std::string(what) + ": " + error.what(),
                       .hint = {},
                       .origin = {}});
    }
  }

  /// The statement with its values instead of $1 to $9.
  static std::string quoted(::pqxx::dbtransaction& tx, const postgres::Call& call) {
    std::string text;
    for (std::size_t at = 0; at < call.sql.size(); ++at) {
      if (call.sql[at] != '$') {
        text += call.sql[at];
      } else {
        text += tx.quote(call.values.at(static_cast<std::size_t>(call.sql[++at] - '1')));
      }
    }
    return text;
  }

  static ::pqxx::field row(const ::pqxx::result& rows) {
    if (rows.empty()) throw Exception(postgres::wrong_encoding());
    return rows[0][0];
  }

  postgres::Statements statements_;
};

}  // namespace outbox::libpqxx
