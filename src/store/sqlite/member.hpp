// A relay that is registered at the file: a row of outbox_relay.
#pragma once

#include <cstdint>
#include <string>

#include "base/process.hpp"
#include "store/sqlite/statement.hpp"

namespace outbox::store::sqlite {

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

}  // namespace outbox::store::sqlite
