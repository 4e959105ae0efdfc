// The source as the registry sees it: its settings, and what a server says of the streams.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <string_view>

#include "base/error.hpp"
#include "base/steady.hpp"
#include "base/units.hpp"
#include "sink/hiredis/error_map.hpp"
#include "sink/hiredis/session.hpp"
#include "sink/redis/config.hpp"
#include "source/redis/redis_source.hpp"

namespace outbox::source::redis {
namespace {

using namespace std::chrono;

/// Entries stay until somebody trims the stream, whatever was acknowledged. So the server knows
/// only how old the oldest one is.
void look_at_oldest(const std::string& stream, const redisReply& info, Inspection& found) {
  const redisReply& first = find(info, "first-entry");
  if (size(first) == 0) return;
  const EntryId id = EntryId::parse(sink::hiredis::to_text(element(first, 0)));
  const auto now = duration_cast<milliseconds>(system_clock::now().time_since_epoch());
  const auto age = now - milliseconds(id.ms);
  found.add({.longest = ceil<hours>(age),
             .what = fmt::format("stream {} has messages that are more than {} old", stream,
                                 format_duration(floor<hours>(age))),
             .shorten = "the stream by XTRIM MINID"});
}

Result<sink::hiredis::ServerOptions> read_options(const ConsumerSpec& spec) {
  OUTBOX_TRY(const auto settings, read_connection(sink::redis::declaration(), spec));
  return read_valid(sink::hiredis::parse_options, "redis", settings,
                    "the streams are what the consumer reads");
}

Result<Inspection> inspect(const ConsumerSpec& spec) {
  OUTBOX_TRY(const auto options, read_options(spec));
  OUTBOX_TRY(const auto connection, sink::hiredis::open_connection(options, purpose()));
  Inspection found{.broker = connection->address()};
  for (const std::string& stream : spec.read) {
    const std::array<std::string_view, 3> command{"XINFO", "STREAM", stream};
    OUTBOX_TRY(const auto reply, connection->ask(command, now_steady() + options.deadline));
    const std::string_view text = sink::hiredis::to_text(*reply);
    if (reply->type != REDIS_REPLY_ERROR) {
      found.reads.push_back("stream " + stream);
      look_at_oldest(stream, *reply, found);
    } else if (text == "ERR no such key") {
      found.weaknesses.push_back(
          {"stream " + stream + " does not exist",
           "the consumer makes it, and no message is received until somebody adds one to it",
           "check the name in `read`, unless nothing was sent yet"});
    } else {
      return fail(
          sink::hiredis::describe(text, connection->address() + ", stream " + stream, purpose()));
    }
  }
  return found;
}

}  // namespace

SourceKind kind() {
  return {.name = "redis",
          .help = "reads Redis Streams as a consumer of a group",
          .reads = "streams",
          .of_sending = {"dedup_window", "max_length", "max_in_flight", "wait_replicas",
                         "wait_timeout", "max_message_bytes"},
          .make = [](const ConsumerSpec& spec) -> Result<std::unique_ptr<Source>> {
            OUTBOX_TRY(auto options, read_options(spec));
            return std::make_unique<RedisSource>(std::move(options), spec);
          },
          .inspect = inspect};
}

}  // namespace outbox::source::redis
