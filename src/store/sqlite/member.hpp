// A relay that is registered at the file: a row of outbox_relay.
#pragma once

#include <cstdint>
#include <string>

#include "base/process.hpp"
#include "store/sqlite/statement.hpp"

namespace outbox::store::sqlite {

struct RelayMember {
  std::string id;
  std::string name;
  ProcessIdentity process;
  std::int64_t beat{0};
  std::int64_t lease_ms{0};
  std::string groups;  ///< Joined by commas.
};

/// The first nine columns of query::kMembers, kMember and kRelays.
[[nodiscard]] RelayMember member_of(const Statement& row);

/// The lease has run out, or the process is certainly gone.
[[nodiscard]] bool is_dead(const RelayMember& member, const ProcessIdentity& self,
                           std::int64_t now_us);

}  // namespace outbox::store::sqlite
