#include "store/sql/audit.hpp"

#include <string>
#include <utility>

#include "base/error.hpp"
#include "store/text.hpp"

namespace outbox::store::sql {
namespace {

AuditRow read_audit(Row row) {
  AuditRow found;
  PersonDecision& decision = found.decision;
  row.read(found.id, found.at_us, decision.actor, decision.origin, decision.verb,
           found.subscription, decision.filter, found.count, decision.reason);
  return found;
}

class SqlAudit final : public store::Audit {
 public:
  explicit SqlAudit(std::unique_ptr<Connection> connection) : db_(std::move(connection)) {}

  [[nodiscard]] Result<std::vector<AuditRow>> list(const AuditFilter& filter,
                                                   std::size_t limit) override {
    const Param since = filter.since_us ? Param(Time{*filter.since_us}) : Param(nullptr);
    OUTBOX_TRY(const Rows rows,
               db_->exec(&Statements::list_audit,
                         {since, or_null(filter.before), text_or_null(filter.actor),
                          text_or_null(filter.subscription), static_cast<std::int64_t>(limit)}));
    return rows.list(read_audit);
  }

 private:
  std::unique_ptr<Connection> db_;
};

/// Returns the id of the row, or 0 if the connection acts for no person.
Result<std::int64_t> insert_decision(Connection& connection, const ChangedSubscription& of,
                                     std::int64_t count) {
  const auto& decision = connection.decision();
  if (!decision) return 0;
  // A byte that the database refuses must not make a change impossible that it would accept.
  const std::string actor = storable_text(decision->actor);
  const std::string reason = storable_text(decision->reason);
  OUTBOX_TRY(const Rows rows,
             connection.exec(&Statements::record_decision,
                             {actor, decision->origin, decision->verb, text_or_null(of.name),
                              or_null(of.id), decision->filter, count, reason}));
  return rows.first<std::int64_t>();
}

}  // namespace

Status record(Connection& connection, const ChangedSubscription& of, std::int64_t count) {
  auto inserted = insert_decision(connection, of, count);
  return inserted ? Status{} : Status(pass(inserted));
}

Result<std::int64_t> record_batch(Connection& connection, std::int64_t row, std::int64_t count) {
  if (row == 0) return insert_decision(connection, {}, count);
  OUTBOX_TRY(connection.run(&Statements::record_more, {row, count}));
  return row;
}

Status change_recorded(Connection& connection, const ChangedSubscription& of,
                       const std::function<Result<std::int64_t>()>& change) {
  if (!connection.decision()) {
    OUTBOX_TRY([[maybe_unused]] const std::int64_t changed, change());
    return {};
  }
  return connection.transact([&]() -> Result<Decision> {
    OUTBOX_TRY(connection.run(&Statements::begin_decision));
    OUTBOX_TRY(const std::int64_t changed, change());
    if (changed == 0) return Decision::rollback;
    OUTBOX_TRY(record(connection, of, changed));
    return Decision::commit;
  });
}

std::unique_ptr<store::Audit> make_audit(std::unique_ptr<Connection> connection) {
  return std::make_unique<SqlAudit>(std::move(connection));
}

}  // namespace outbox::store::sql
