// The transactions of Handlers::on_tx() in SQLite.
#include <sqlite3.h>

#include <map>
#include <outbox/sqlite.hpp>
#include <outbox/worker.hpp>
#include <string>

#include "event/headers.hpp"
#include "store/enqueue.hpp"
#include "store/sqlite/connection.hpp"
#include "store/sqlite/path.hpp"

namespace outbox {
namespace {

/// The connection of this thread of a worker to the store, one for each file.
sqlite3* connection_to(std::string_view url) {
  thread_local std::map<std::string, store::sqlite::Connection> all;
  const std::string path = store::value_or_throw(store::sqlite::parse_path(std::string(url)));
  auto found = all.find(path);
  // A file that was replaced is another store.
  if (found != all.end() && !found->second.check_in_place()) {
    all.erase(found);
    found = all.end();
  }
  if (found == all.end()) {
    found = all.emplace(path, store::value_or_throw(store::sqlite::Connection::open(path))).first;
  }
  return found->second.handle();
}

}  // namespace

bool TaskTransaction<sqlite::Transaction>::run(
    const TaskRun& run, const std::function<bool(sqlite::Transaction&)>& body) {
  return sqlite::with_transaction(connection_to(run.store_url),
                                  [&](sqlite::Transaction& tx) {
                                    if (!run.once(tx)) return false;
                                    tx.inherit(event::inherited_headers(run.headers, run.id));
                                    if (!body(tx)) tx.rollback();
                                    return true;
                                  },
                                  {.stop = run.stop});
}

}  // namespace outbox
