// What the linked SQLite can be trusted with.
#pragma once

namespace outbox::store::sqlite {

/// 3.7.0 to 3.51.2: when one connection starts a second checkpoint right after a complete one while another connection
/// commits, the file can be corrupted (https://sqlite.org/wal.html, "the WAL-reset bug"). With such a version the relay
/// leaves checkpoints to the application.
[[nodiscard]] constexpr bool has_wal_reset_bug(int version_number) noexcept {
  return version_number >= 3007000 && version_number < 3051003;
}

}  // namespace outbox::store::sqlite
