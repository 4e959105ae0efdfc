// A replication connection (docs/design/feed.md). It knows only plain commands, and none of its
// calls waits longer than it takes to interrupt it, except that connecting takes its time.
#pragma once

#include <functional>
#include <optional>
#include <outbox/error.hpp>
#include <string>
#include <string_view>

#include "base/event_fd.hpp"
#include "pg/connect.hpp"
#include "store/postgres/query.hpp"
#include "store/postgres/wal_core.hpp"
#include "store/store.hpp"

namespace outbox::store::postgres {

/// It is used by one thread at a time.
class WalConnection {
 public:
  /// Whoever signals `interrupted` interrupts every call.
  [[nodiscard]] static Result<WalConnection> open(const StoreOptions& options,
                                                  const EventFd& interrupted);

  /// The id of the process in the server.
  [[nodiscard]] int backend() const { return PQbackendPID(connection_.get()); }

  /// Sends a command and waits for its result. Meanwhile it calls `waiting` every half second, and
  /// cancels the command if that returns false. Returns false if it was cancelled or interrupted.
  [[nodiscard]] Result<bool> run(const Query& query, const std::function<bool()>& waiting);

  /// Takes a message of the stream that has arrived; nullopt if there is none.
  [[nodiscard]] Result<std::optional<WalMessage>> take();
  /// Waits for the next ones. Returns false if it was interrupted.
  [[nodiscard]] Result<bool> wait(WalTime until);
  [[nodiscard]] Status reply(const WalPosition::Reply& reply);

 private:
  WalConnection(pg::ConnectionPointer connection, const EventFd& interrupted)
      : connection_(std::move(connection)), interrupted_(interrupted) {}

  [[nodiscard]] Status collect(std::string_view what);
  void cancel();

  pg::ConnectionPointer connection_;
  const EventFd& interrupted_;
};

}  // namespace outbox::store::postgres
