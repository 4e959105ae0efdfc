// Counts the syncs of SQLite's files in this process. The counting VFS is the default one with
// another xSync.
#pragma once

namespace outbox::conformance {

struct Syncs {
  int wal{0};
  int database{0};
  bool operator==(const Syncs&) const = default;
};

/// Makes the counting VFS the default for connections opened from now on.
void count_syncs();
/// The number of syncs since the last call.
[[nodiscard]] Syncs take_syncs();

}  // namespace outbox::conformance
