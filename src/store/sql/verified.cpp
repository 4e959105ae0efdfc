// What continuous verification has compared.
#include <utility>

#include "store/history.hpp"
#include "store/sql/audit.hpp"
#include "store/sql/parts.hpp"

namespace outbox::store::sql {
namespace {

class SqlVerified final : public store::Verified {
 public:
  explicit SqlVerified(std::unique_ptr<Connection> connection) : db_(std::move(connection)) {}

  [[nodiscard]] Result<std::vector<VerifiedRow>> list() override {
    OUTBOX_TRY(const Rows rows, db_->exec(&Statements::list_verified));
    return rows.list([](Row row) {
      VerifiedRow found;
      std::int64_t age_us = 0;
      row.read(found.subscription, found.name, found.place, found.events, found.differences,
               found.verifier, age_us, found.revision, found.now_us);
      found.age = std::chrono::milliseconds(age_us / 1000);
      return found;
    });
  }

  [[nodiscard]] Result<bool> save(const VerifiedRow& read, const std::string& place,
                                  const std::string& verifier, std::int64_t events,
                                  std::int64_t differences) override {
    OUTBOX_TRY(const Rows rows,
               db_->exec(&Statements::save_verified,
                         {read.subscription, place, events, differences, verifier, read.revision}));
    return !rows.empty();
  }

  [[nodiscard]] Result<bool> forget_differences(const VerifiedRow& read) override {
    bool forgot = false;
    OUTBOX_TRY(change_recorded(*db_, {.id = read.subscription}, [&]() -> Result<std::int64_t> {
      OUTBOX_TRY(const Rows rows,
                 db_->exec(&Statements::forget_differences, {read.subscription, read.revision}));
      forgot = !rows.empty();
      return forgot ? read.differences : 0;
    }));
    return forgot;
  }

 private:
  const std::unique_ptr<Connection> db_;
};

}  // namespace

std::unique_ptr<store::Verified> make_verified(std::unique_ptr<Connection> connection) {
  return std::make_unique<SqlVerified>(std::move(connection));
}

}  // namespace outbox::store::sql
