// The transactions of Handlers::on_tx() in PostgreSQL.
#include <libpq-fe.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <outbox/postgres.hpp>
#include <outbox/worker.hpp>
#include <string>
#include <thread>
#include <utility>

#include "base/steady.hpp"
#include "event/headers.hpp"
#include "pg/connect.hpp"
#include "pg/errors.hpp"

namespace outbox {
namespace {

/// How often a run begins anew when its connection is lost, since a server that restarts or fails
/// over is back within seconds.
constexpr int kMostConnections = 10;
constexpr std::chrono::milliseconds kFirstPause{50};
/// A worker that stands still in its transaction would hold the row of the task, for which the
/// worker waits that has taken the task over. Not before this long after the deadline of the run.
constexpr std::chrono::seconds kIdleGrace{10};
/// The server takes no longer limit than 24 days.
constexpr std::chrono::hours kLongestIdle{24 * 20};

/// The connections of a thread of a worker, one for each store.
class ThreadConnections {
 public:
  [[nodiscard]] PGconn* get(std::string_view url) {
    auto& connection = connections_[std::string(url)];
    if (connection && PQstatus(connection.get()) == CONNECTION_OK) return connection.get();
    connection.reset(pg::connect(std::string(url), "outbox handler"));
    if (connection && PQstatus(connection.get()) == CONNECTION_OK) return connection.get();
    Exception failed(pg::failed_connect(connection.get()));
    connection.reset();
    throw failed;
  }
  void drop(std::string_view url) { connections_.erase(std::string(url)); }

 private:
  std::map<std::string, pg::ConnectionPointer> connections_;
};

ThreadConnections& connections() {
  thread_local ThreadConnections all;
  return all;
}

/// Whether the run can begin anew: the connection was lost, or could not be made. If a COMMIT was
/// under way, once() says in the next transaction whether it has taken effect.
bool lost_connection(const Exception& thrown, PGconn* connection) {
  if (dynamic_cast<const postgres::InDoubt*>(&thrown) != nullptr) return true;
  return connection == nullptr ? thrown.error().code == Errc::unavailable
                               : PQstatus(connection) != CONNECTION_OK;
}

}  // namespace

bool TaskTransaction<postgres::Transaction>::run(
    const TaskRun& run, const std::function<bool(postgres::Transaction&)>& body) {
  const auto left = std::clamp<std::chrono::milliseconds>(
      std::chrono::duration_cast<std::chrono::milliseconds>(run.deadline - now_steady()),
      std::chrono::milliseconds(0), kLongestIdle);
  const postgres::TransactionOptions options{.retry = {.stop = run.stop},
                                             .outbox = {.schema = std::string(run.schema)},
                                             .idle_limit = left + kIdleGrace};
  auto pause = kFirstPause;
  for (int attempt = 1;; ++attempt) {
    PGconn* connection = nullptr;
    try {
      connection = connections().get(run.store_url);
      return postgres::with_transaction(
          connection,
          [&](postgres::Transaction& tx) {
            if (!run.once(tx)) return false;
            tx.inherit(event::inherited_headers(run.headers, run.id));
            if (!body(tx)) tx.rollback();
            return true;
          },
          options);
    } catch (const Exception& thrown) {
      const bool lost = lost_connection(thrown, connection);
      if (lost) connections().drop(run.store_url);
      if (!lost || attempt == kMostConnections || run.stop.stop_requested()) throw;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min<std::chrono::milliseconds>(2 * pause, std::chrono::seconds(2));
  }
}

}  // namespace outbox
