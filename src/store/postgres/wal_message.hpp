// Messages of a logical replication stream of pgoutput, protocol 1, as far as the feed needs them
// (docs/design/feed.md). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace outbox::store::postgres {

/// A position in the write-ahead log.
using Lsn = std::uint64_t;

struct WalMessage {
  enum class Kind : std::uint8_t {
    keepalive,
    begin,
    insert,
    truncate,
    commit,
    other,  ///< Something that the feed does not need, such as the columns of a table.
  };
  Kind kind{Kind::other};
  Lsn sent{0};           ///< How far the server has sent the log; 0 if the message does not say it.
  std::uint32_t xid{0};  ///< Of begin: the lower half of the transaction's id.
  bool wants_reply{false};  ///< Of a keepalive.
};

/// Decodes what one CopyData message contains. Returns nullopt if the bytes are no message, or not
/// the whole of one.
[[nodiscard]] std::optional<WalMessage> decode_wal_message(std::string_view bytes) noexcept;

/// The message with which a client says that it needs nothing before `lsn` again. `now_us` is
/// counted from 1970. With `ask` the server answers with a keepalive.
[[nodiscard]] std::string encode_wal_reply(Lsn lsn, std::int64_t now_us, bool ask);

}  // namespace outbox::store::postgres
