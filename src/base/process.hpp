// Which process a relay is, so that another one on this machine sees at once that it is gone. Linux: proc(5).
#pragma once

#include <cstdint>
#include <string>

namespace outbox {

struct ProcessIdentity {
  std::string boot_id;  ///< Which machine, since when.
  std::string pid_ns;   ///< A pid means something only inside its namespace.
  std::int64_t pid{0};
  std::int64_t started{0};  ///< In clock ticks after boot: tells a reused pid apart. 0: not known.
};

[[nodiscard]] ProcessIdentity this_process();

/// True only when it is certain: a process of our machine and namespace that is no more. Of other machines nothing is known.
[[nodiscard]] bool is_gone(const ProcessIdentity& process, const ProcessIdentity& self);

}  // namespace outbox
