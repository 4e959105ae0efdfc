// Identifies a process, so that another one on the same machine can see at once that it has ended. Linux: proc(5).
#pragma once

#include <cstdint>
#include <string>

namespace outbox {

struct ProcessIdentity {
  std::string boot_id;  ///< Identifies the machine and its boot.
  std::string pid_ns;   ///< Of the pid: pids are unique only within a namespace.
  std::int64_t pid{0};
  std::int64_t started{0};  ///< In clock ticks after boot; distinguishes a reused pid. 0: unknown.
};

[[nodiscard]] ProcessIdentity this_process();

/// "host:pid", for people.
[[nodiscard]] std::string process_name();

/// True only when it is certain that the process has ended, which is known only on our machine and in our namespace.
[[nodiscard]] bool is_gone(const ProcessIdentity& process, const ProcessIdentity& self);

}  // namespace outbox
