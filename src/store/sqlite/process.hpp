// Which process of which boot a relay is, so that another one on this machine sees at once that it is gone.
#pragma once

#include <cstdint>
#include <string>

namespace outbox::store::sqlite {

struct ProcessIdentity {
  std::string boot_id;
  std::string pid_ns;  ///< A pid means something only inside its namespace.
  std::int64_t pid{0};
  std::int64_t started{0};  ///< In clock ticks after boot: tells a reused pid apart.

  bool operator==(const ProcessIdentity&) const = default;
};

[[nodiscard]] ProcessIdentity this_process();

/// True only when it is certain: another boot, or a pid of our namespace that is free, a zombie or another process.
[[nodiscard]] bool is_gone(const ProcessIdentity& process, const ProcessIdentity& self);

}  // namespace outbox::store::sqlite
