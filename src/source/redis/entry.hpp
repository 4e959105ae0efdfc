// An entry of a stream as a message, and what the replies of the server are read with. Pure.
#pragma once

#include <hiredis/hiredis.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "source/source.hpp"

namespace outbox::source::redis {

/// The element of an array; a nil reply if there is none.
[[nodiscard]] const redisReply& element(const redisReply& array, std::size_t index);
/// The value of a name in a reply that has names and values in turn; a nil reply if there is none.
[[nodiscard]] const redisReply& find(const redisReply& map, std::string_view name);
/// The elements of an array; 0 for any other reply.
[[nodiscard]] std::size_t size(const redisReply& array);
/// The integer; nullopt for any other reply.
[[nodiscard]] std::optional<std::int64_t> number(const redisReply& reply);

struct EntryId {
  std::uint64_t ms{0};
  std::uint64_t seq{0};

  /// Parses "1795410928283-0". Anything else becomes 0-0, which no entry has.
  [[nodiscard]] static EntryId parse(std::string_view text);
  [[nodiscard]] std::string text() const;
  [[nodiscard]] auto operator<=>(const EntryId&) const = default;
};

/// The message of an entry with these names and values (docs/sources/redis.md).
[[nodiscard]] Received read_entry(const std::string& stream, std::string_view id,
                                  const redisReply& fields);
/// The id of the entry that the message came from.
[[nodiscard]] std::string_view entry_id(const Received& message);

}  // namespace outbox::source::redis
