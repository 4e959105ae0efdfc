// The relay's side of the armed wake-up (docs/stores/postgres.md, "Wake-up"); the writer's is the default of event.xid.
//
// A writer holds a shared lock from its first event to its commit, and notifies only when it cannot have it. Armed means
// that we hold it exclusively: then nobody is in flight, and every later writer notifies. Locks are released after a commit
// has become visible, so no wake-up is lost.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/event_fd.hpp"
#include "store/postgres/connection.hpp"
#include "store/postgres/queries.hpp"
#include "store/wakeup.hpp"

namespace outbox::store::postgres {

class PostgresWakeup final : public Wakeup {
 public:
  /// Listens. A connection that a pooler shares cannot be armed: then, and without a connection, arm() says no.
  [[nodiscard]] static Result<std::unique_ptr<PostgresWakeup>> create(
      std::optional<Connection> connection, std::shared_ptr<const Queries> queries);

  [[nodiscard]] Result<bool> arm() override;
  [[nodiscard]] Status disarm() override;
  [[nodiscard]] Result<Wake> wait(Duration longest) override;
  void interrupt() noexcept override { interrupted_.signal(); }
  [[nodiscard]] std::uint64_t statements() const override {
    return connection_ ? connection_->statements() : 0;
  }

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  PostgresWakeup(std::optional<Connection> connection, std::shared_ptr<const Queries> queries,
                 EventFd interrupted)
      : connection_(std::move(connection)),
        queries_(std::move(queries)),
        interrupted_(std::move(interrupted)) {}

  [[nodiscard]] Status listen();
  [[nodiscard]] Result<bool> notified();
  /// Until something can be read, interrupt() is called or the time is up; which of the first two.
  struct Ready {
    bool socket{false};
    bool interrupted{false};
  };
  [[nodiscard]] Result<Ready> poll_until(TimePoint until) const;

  std::optional<Connection> connection_;
  std::shared_ptr<const Queries> queries_;
  EventFd interrupted_;
  bool direct_{false};  ///< The connection is ours alone.
  bool armed_{false};
};

}  // namespace outbox::store::postgres
