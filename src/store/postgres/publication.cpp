// The publication that the feed from the write-ahead log needs (docs/design/feed.md).
#include <string>

#include "base/error.hpp"
#include "store/postgres/parts.hpp"

namespace outbox::store::postgres {
namespace {

constexpr int kListsOfColumns = 150000;

}  // namespace

Result<WalFacts> read_wal_facts(Connection& connection) {
  OUTBOX_TRY(const Rows rows, connection.exec(&Queries::wal_conditions));
  using Publication = WalFacts::Publication;
  const std::int32_t found = rows.int4(0, 6);
  return WalFacts{.wal_level = rows.text(0, 0),
                  .standby = rows.boolean(0, 1),
                  // A pooler invents the process id that it reports to libpq.
                  .pooler = rows.int4(0, 2) != PQbackendPID(connection.native()),
                  .login = rows.text(0, 3),
                  .may_replicate = rows.boolean(0, 4),
                  .publication_name = rows.text(0, 5),
                  .publication = found == 0   ? Publication::missing
                                 : found == 1 ? Publication::wrong
                                              : Publication::good,
                  .slots = rows.int8(0, 7),
                  .free_slots = rows.int8(0, 8),
                  .senders = rows.int8(0, 9),
                  .free_senders = rows.int8(0, 10),
                  .any_is_standby = rows.boolean(0, 11)};
}

Result<std::string> make_wal_publication(Connection& connection) {
  OUTBOX_TRY(const WalFacts facts, read_wal_facts(connection));
  switch (facts.publication) {
    case WalFacts::Publication::good: return std::string();
    case WalFacts::Publication::wrong:
      return fail(Errc::already_exists,
                  "the publication " + facts.publication_name + " is another one",
                  "DROP PUBLICATION it if nobody needs it, and run this again");
    case WalFacts::Publication::missing: break;
  }
  const bool columns = PQserverVersion(connection.native()) >= kListsOfColumns;
  Query query = connection.queries().make_publication;
  replace_all(query.sql, "{published}", columns ? "(lane)" : "");
  if (Status status = connection.script(query.what, query.sql); !status) {
    if (status.error().code == Errc::permission_denied)
      status.error().hint =
          "it takes the owner of the tables, with the right CREATE on the database";
    return pass(status);
  }
  return "the publication " + facts.publication_name + " of " + connection.queries().schema +
         (columns ? ".event (lane)" : ".event");
}

}  // namespace outbox::store::postgres
