// The relay's side of the armed wake-up (docs/stores/postgres.md, "Wake-up"); the writer's is the default of event.xid.
//
// A writer holds a shared lock from its first event to its commit, and notifies only when it cannot get it. Armed means that
// we hold it exclusively: then no writer is in flight, and every later one notifies. Locks are released after a commit has
// become visible, so no wake-up is lost.
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/event_fd.hpp"
#include "base/log.hpp"
#include "store/postgres/error_map.hpp"
#include "store/postgres/parts.hpp"

namespace outbox::store::postgres {
namespace {

using Clock = std::chrono::steady_clock;

/// The server ends an armed session that is silent for 3 s (queries.cpp).
constexpr std::chrono::seconds kPingEvery{1};

struct FreeNotify {
  void operator()(PGnotify* notify) const noexcept { PQfreemem(notify); }
};

/// Takes what libpq has received; true when there was something.
bool take_notifications(PGconn* connection) {
  bool any = false;
  while (const std::unique_ptr<PGnotify, FreeNotify> one{PQnotifies(connection)}) any = true;
  return any;
}

class PostgresWakeup final : public Wakeup {
 public:
  PostgresWakeup(std::optional<Connection> connection, std::shared_ptr<const Queries> queries,
                 EventFd interrupted)
      : connection_(std::move(connection)),
        queries_(std::move(queries)),
        interrupted_(std::move(interrupted)) {}

  [[nodiscard]] Status listen() {
    if (!connection_) return {};
    auto channel = connection_->exec(queries_->wake_channel);
    if (!channel) return pass(channel);
    // A pooler that shares connections invents the process id that it tells libpq.
    direct_ = channel->int4(0, 1) == PQbackendPID(connection_->native());
    if (!direct_) {
      log::info("wake-up is not armed, the relay polls instead",
                {{"reason", "the connection goes through a pooler"}});
      return {};
    }
    const Query listen_there = postgres::listen(channel->bytes(0, 0));
    auto listening = connection_->exec(listen_there);
    if (!listening) return pass(listening);
    return {};
  }

  [[nodiscard]] Result<bool> arm() override {
    if (!direct_) return false;
    if (armed_) return true;
    // Earlier notifications belong to polls that are done.
    (void)take_notifications(connection_->native());
    auto tried = connection_->exec(queries_->arm);
    if (!tried) return pass(tried);
    armed_ = tried->boolean(0, 0);
    return armed_;
  }

  [[nodiscard]] Status disarm() override {
    if (!armed_) return {};
    armed_ = false;
    auto done = connection_->exec(queries_->disarm);
    if (!done) return pass(done);
    return {};
  }

  [[nodiscard]] Result<Wakeup::Wake> wait(Duration longest) override {
    const auto until = Clock::now() + std::min<Duration>(longest, std::chrono::hours(1));
    auto ping_at = Clock::now() + kPingEvery;
    for (;;) {
      if (armed_) {
        auto woken = notified();
        if (!woken) return pass(woken);
        if (*woken) return Wake::notified;
      }
      if (Clock::now() >= until) return Wake::timeout;
      if (armed_ && Clock::now() >= ping_at) {
        if (auto alive = connection_->exec(queries_->ping); !alive) return pass(alive);
        ping_at = Clock::now() + kPingEvery;
        continue;  // the answer may have brought a notification
      }
      auto ready = poll_until(armed_ ? std::min(until, ping_at) : until);
      if (!ready) return pass(ready);
      if (ready->interrupted) {
        (void)interrupted_.clear();
        return Wake::interrupted;
      }
    }
  }

  void interrupt() noexcept override { interrupted_.signal(); }
  [[nodiscard]] std::uint64_t statements() const override {
    return connection_ ? connection_->statements() : 0;
  }

 private:
  [[nodiscard]] Result<bool> notified() {
    PGconn* const connection = connection_->native();
    if (PQconsumeInput(connection) != 1)
      return fail(lost_connection(connection, "wait for a wake-up"));
    return take_notifications(connection);
  }

  struct Ready {
    bool socket{false};
    bool interrupted{false};
  };
  /// Waits until the socket can be read, interrupt() is called or the time is up.
  [[nodiscard]] Result<Ready> poll_until(Clock::time_point until) const {
    std::array<pollfd, 2> fds{
        {{.fd = interrupted_.fd(), .events = POLLIN, .revents = 0},
         {.fd = armed_ ? PQsocket(connection_->native()) : -1, .events = POLLIN, .revents = 0}}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    const int ready =
        ::poll(fds.data(), fds.size(), static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready < 0 && errno != EINTR) return fail(Errc::internal, "wait for a wake-up: poll failed");
    return Ready{.socket = ready > 0 && fds[1].revents != 0,
                 .interrupted = ready > 0 && fds[0].revents != 0};
  }

  std::optional<Connection> connection_;
  std::shared_ptr<const Queries> queries_;
  EventFd interrupted_;
  bool direct_{false};  ///< No pooler shares the connection.
  bool armed_{false};
};

}  // namespace

Result<std::unique_ptr<Wakeup>> make_wakeup(std::optional<Connection> connection,
                                            std::shared_ptr<const Queries> queries) {
  auto interrupted = EventFd::create();
  if (!interrupted) return pass(interrupted);
  auto wakeup = std::make_unique<PostgresWakeup>(std::move(connection), std::move(queries),
                                                 std::move(*interrupted));
  if (Status status = wakeup->listen(); !status) return pass(status);
  return wakeup;
}
}  // namespace outbox::store::postgres
