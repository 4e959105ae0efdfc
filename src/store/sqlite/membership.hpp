// One relay per file. Two things say who it is: the lock file (owner_lock.hpp), which ends with the owner's process,
// and the owner's row with its lease, for an owner that hangs. Every change of the owner raises the generation.
#pragma once

#include <optional>
#include <outbox/event.hpp>
#include <string>
#include <utility>

#include "base/process.hpp"
#include "store/membership.hpp"
#include "store/sqlite/connection.hpp"
#include "store/sqlite/owner_lock.hpp"

namespace outbox::store::sqlite {

/// A row of outbox_relay.
struct Member {
  std::string id;
  std::string name;
  std::int64_t generation{0};
  ProcessIdentity process;
  std::int64_t beat{0};
  std::int64_t lease_ms{0};
};

/// The first nine columns of query::kOwner and query::kRelays.
[[nodiscard]] Member member_of(const Statement& row);

/// The lease has run out, or the process is certainly gone.
[[nodiscard]] bool is_dead(const Member& member, const ProcessIdentity& self, std::int64_t now_us);

class SqliteMembership final : public Membership {
 public:
  SqliteMembership(Connection connection, std::string relay_name, const EventId& relay);
  SqliteMembership(const SqliteMembership&) = delete;
  SqliteMembership& operator=(const SqliteMembership&) = delete;
  SqliteMembership(SqliteMembership&&) = delete;
  SqliteMembership& operator=(SqliteMembership&&) = delete;
  ~SqliteMembership() override = default;

  [[nodiscard]] Result<Standing> keep(std::chrono::milliseconds lease) override;
  [[nodiscard]] Result<bool> vacant() override;
  [[nodiscard]] Status leave() override;

 private:
  [[nodiscard]] Result<Standing> renew(std::chrono::milliseconds lease, bool locked);
  [[nodiscard]] Result<std::optional<Member>> read_owner();
  [[nodiscard]] bool may_take(const std::optional<Member>& owner, bool locked) const;
  [[nodiscard]] Result<std::int64_t> take();
  [[nodiscard]] Status write(bool owner, std::int64_t generation, std::chrono::milliseconds lease);

  Connection connection_;
  const std::string id_;
  const std::string name_;
  const ProcessIdentity self_;
  OwnerLock lock_;
  bool claimed_{false};  ///< The file is ours by a claim of this object, not of one before it.
};

}  // namespace outbox::store::sqlite
