// Identifies a process, so that another one on the machine sees when it has ended (proc(5)).
#pragma once

#include <cstdint>
#include <string>

namespace outbox {

struct ProcessIdentity {
  std::string boot_id;  ///< Identifies the machine and its boot.
  std::string pid_ns;   ///< The namespace within which the pid is unique.
  std::int64_t pid{0};
  std::int64_t started{0};  ///< In clock ticks after boot, to recognize a reused pid; 0 if unknown.
};

[[nodiscard]] ProcessIdentity this_process();

/// The text "host:pid", for people.
[[nodiscard]] std::string process_name();

/// Whether the process has certainly ended, as is known only on our machine and in our namespace.
[[nodiscard]] bool is_gone(const ProcessIdentity& process, const ProcessIdentity& self);

}  // namespace outbox
