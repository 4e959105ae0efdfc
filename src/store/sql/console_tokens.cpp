// The tokens of the console.
#include "store/console_tokens.hpp"

#include <utility>

#include "base/error.hpp"
#include "store/sql/audit.hpp"
#include "store/sql/parts.hpp"

namespace outbox::store::sql {
namespace {

ConsoleToken read_token(Row row) {
  ConsoleToken token;
  row.read(token.name, token.digest, token.role, token.payloads, token.created_by, token.created_us,
           token.expires_us);
  return token;
}

class SqlConsoleTokens final : public store::ConsoleTokens {
 public:
  explicit SqlConsoleTokens(std::unique_ptr<Connection> connection) : db_(std::move(connection)) {}

  [[nodiscard]] Result<std::vector<ConsoleToken>> list() override {
    OUTBOX_TRY(const Rows rows, db_->exec(&Statements::list_tokens));
    return rows.list(read_token);
  }

  [[nodiscard]] Status add(const ConsoleToken& token) override {
    const Param expires = token.expires_us ? Param(Time{*token.expires_us}) : Param(nullptr);
    OUTBOX_TRY(const bool added,
               change(&Statements::add_token, {token.name, token.digest, token.role, token.payloads,
                                               token.created_by, expires}));
    if (added) return {};
    return fail(Errc::already_exists, Remedy::fix, "there is a token with the name " + token.name,
                "choose another name, or remove that one first");
  }

  [[nodiscard]] Status remove(std::string_view name) override {
    OUTBOX_TRY(const bool removed, change(&Statements::remove_token, {name}));
    if (removed) return {};
    return fail(Errc::not_found, Remedy::fix,
                "there is no token with the name " + std::string(name),
                "outbox console token list shows them");
  }

 private:
  /// Whether a row was changed, which is recorded with it.
  [[nodiscard]] Result<bool> change(Named statement, const Params& params) {
    bool changed = false;
    OUTBOX_TRY(change_recorded(*db_, {}, [&]() -> Result<std::int64_t> {
      OUTBOX_TRY(const Rows rows, db_->exec(statement, params));
      changed = !rows.empty();
      return static_cast<std::int64_t>(rows.size());
    }));
    return changed;
  }

  const std::unique_ptr<Connection> db_;
};

}  // namespace

std::unique_ptr<store::ConsoleTokens> make_console_tokens(std::unique_ptr<Connection> connection) {
  return std::make_unique<SqlConsoleTokens>(std::move(connection));
}

}  // namespace outbox::store::sql
