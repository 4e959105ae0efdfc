// Which relay owns the lanes (docs/design/schema.md, "Relays"): a row per relay with a heartbeat, a row per lane with its
// owner and the generation.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <outbox/event.hpp>
#include <string>

#include "base/process.hpp"
#include "store/membership.hpp"
#include "store/postgres/connection.hpp"
#include "store/postgres/queries.hpp"

namespace outbox::store::postgres {

class PostgresMembership final : public Membership {
 public:
  PostgresMembership(Connection connection, std::shared_ptr<const Queries> queries,
                     std::string relay_name, const EventId& relay);

  [[nodiscard]] Result<Standing> keep(std::chrono::milliseconds lease) override;
  [[nodiscard]] Result<bool> vacant() override;
  [[nodiscard]] Status leave() override;

 private:
  /// The relay that owns the lanes, as seen a moment ago.
  struct Owner {
    std::optional<EventId> id;  ///< None: the lanes are free.
    std::int64_t generation{0};
    bool vacant{false};  ///< It gave them back, its lease is over, or its process is gone.
    std::string name;
  };

  [[nodiscard]] Status join(std::chrono::milliseconds lease);
  [[nodiscard]] Status beat(std::chrono::milliseconds lease);
  [[nodiscard]] Result<Owner> look();
  [[nodiscard]] Owner owner_of(const Rows& row);
  [[nodiscard]] bool is_silent(const EventId& owner, std::int64_t heartbeat,
                               std::chrono::milliseconds lease);
  /// None: somebody was faster, or the owner lives.
  [[nodiscard]] Result<std::optional<std::int64_t>> take_over(const Owner& owner);
  [[nodiscard]] Result<std::optional<std::int64_t>> lock_vacant(Connection& connection,
                                                                const Owner& owner);

  /// A heartbeat as we first saw it, by a clock that nobody sets.
  struct Heartbeat {
    EventId owner;
    std::int64_t at{0};
    std::chrono::steady_clock::time_point since;
  };

  Connection connection_;
  std::shared_ptr<const Queries> queries_;
  const std::string name_;
  const EventId id_;
  const ProcessIdentity self_{this_process()};
  std::string place_;  ///< ctid of our row; empty: not registered.
  std::optional<Heartbeat> seen_;
  bool claimed_{false};  ///< Lanes of ours are so by a claim of this object, not of one before it.
};

}  // namespace outbox::store::postgres
