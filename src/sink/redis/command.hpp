// The command for one message: EVALSHA of script.hpp, with the fields of the entry. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <outbox/sink.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "event/arena.hpp"
#include "sink/hiredis/purpose.hpp"

namespace outbox::sink::redis {

/// The prefix of CloudEvents attributes, as in text headers; Redis has no binding of its own.
inline constexpr std::string_view kAttributePrefix = "ce_";

/// The fields of an entry that are not headers. A header of such a name gets kRenamedPrefix.
inline constexpr std::string_view kKeyField = "key";
inline constexpr std::string_view kBodyField = "body";
inline constexpr std::string_view kRenamedPrefix = "header:";

/// Keys for ids are this, the stream's hash tag in braces, its name if that is longer, the id.
inline constexpr std::string_view kDedupPrefix = "outbox:dedup:";
/// Appends a key in the hash slot of the stream, as the specification of Redis Cluster computes it
/// ("Hash tags"); some proxies demand that of a script's keys, too. A name with a closing brace and
/// without a tag has no such key.
void append_dedup_key(std::string& out, std::string_view stream, std::string_view id);

class Command final : public hiredis::Calls {
 public:
  Command(std::chrono::milliseconds dedup_window, std::size_t max_length);

  [[nodiscard]] Result<hiredis::Call> call(const Message& message,
                                           std::string_view script_hash) override;

 private:
  void append_id(const EventView& event);

  const std::string window_;
  const std::string max_length_;
  std::vector<std::string_view> arguments_;
  std::string dedup_key_;
  event::Arena arena_;
};

}  // namespace outbox::sink::redis
