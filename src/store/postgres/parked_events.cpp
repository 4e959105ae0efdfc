// Parked events as people see and change them. The functions are in 0004_parking.sql.
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "store/parked.hpp"
#include "store/postgres/parts.hpp"
#include "store/sql/audit.hpp"
#include "store/sql/parts.hpp"

namespace outbox::store::postgres {
namespace {

class PostgresParkedEvents final : public sql::ParkedEvents {
 public:
  explicit PostgresParkedEvents(std::unique_ptr<Connection> connection)
      : sql::ParkedEvents(std::move(connection)), connection_(static_cast<Connection&>(db())) {}

  [[nodiscard]] Result<std::size_t> retry(std::int32_t subscription,
                                          std::span<const std::int64_t> seqs,
                                          bool keep_attempts) override {
    return change(subscription, &Queries::retry_parked,
                  {Param(subscription), Param::int8_array(seqs), Param(keep_attempts)});
  }

  [[nodiscard]] Result<std::size_t> discard(std::int32_t subscription,
                                            std::span<const std::int64_t> seqs,
                                            std::string_view actor,
                                            std::string_view reason) override {
    return change(subscription, &Queries::discard_parked,
                  {Param(subscription), Param::int8_array(seqs), Param(std::string(actor)),
                   Param(std::string(reason))});
  }

  [[nodiscard]] Status edit(const ParkedEdit& edit) override {
    return sql::change_recorded(
        connection_, {.id = edit.subscription}, [&]() -> Result<std::int64_t> {
          OUTBOX_TRY(const Rows rows,
                     connection_.exec_with(
                         &Queries::flushed, &Queries::edit_parked,
                         {edit.subscription, edit.seq, edit.id, edit.new_id, edit.event_type,
                          Param::borrowed(edit.payload), Param::text_or_null(edit.content_type),
                          edit.headers, edit.actor, edit.reason}));
          OUTBOX_TRY(sql::edit_status(rows.bytes(0, 0), edit));
          return 1;
        });
  }

 private:
  /// The change must survive a crash of the database, since the relay may act on it.
  [[nodiscard]] Result<std::size_t> change(std::int32_t subscription, Connection::Named query,
                                           const Params& params) {
    std::int32_t changed = 0;
    OUTBOX_TRY(
        sql::change_recorded(connection_, {.id = subscription}, [&]() -> Result<std::int64_t> {
          OUTBOX_TRY(const Rows rows, connection_.exec_with(&Queries::flushed, query, params));
          changed = rows.int4(0, 0);
          return changed;
        }));
    return static_cast<std::size_t>(changed);
  }

  Connection& connection_;
};

}  // namespace

std::unique_ptr<ParkedEvents> make_parked_events(Connection connection) {
  return std::make_unique<PostgresParkedEvents>(
      std::make_unique<Connection>(std::move(connection)));
}

}  // namespace outbox::store::postgres
