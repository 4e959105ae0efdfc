// Wakes the reader when an event was committed: by the WAL's changes where the system tells of them, else by looking at
// PRAGMA data_version each few milliseconds (1.7 us a look).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/event_fd.hpp"
#include "store/sqlite/connection.hpp"
#include "store/sqlite/wal_watch.hpp"
#include "store/wakeup.hpp"

namespace outbox::store::sqlite {

class SqliteWakeup final : public Wakeup {
 public:
  [[nodiscard]] static Result<std::unique_ptr<SqliteWakeup>> create(Connection connection,
                                                                    bool armed);

  [[nodiscard]] Result<bool> arm() override;
  [[nodiscard]] Status disarm() override { return {}; }
  [[nodiscard]] Result<Wake> wait(Duration longest) override;
  void interrupt() noexcept override { interrupted_.signal(); }
  [[nodiscard]] std::uint64_t statements() const override { return connection_.statements(); }

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  SqliteWakeup(Connection connection, bool armed, EventFd interrupted)
      : connection_(std::move(connection)), armed_(armed), interrupted_(std::move(interrupted)) {}
  [[nodiscard]] Result<bool> has_new_event();
  [[nodiscard]] TimePoint next_look(TimePoint now) const;
  /// True: interrupted.
  [[nodiscard]] bool sleep_until(TimePoint until);

  Connection connection_;
  const bool armed_;
  EventFd interrupted_;
  std::unique_ptr<WalWatch> watch_;

  std::optional<std::int64_t> data_version_;  ///< At the last look.
  std::int64_t newest_{0};                    ///< The newest seq when it was armed.
  TimePoint written_at_{};                    ///< The WAL was written to, as far as told.
};

}  // namespace outbox::store::sqlite
