#include "sink/redis/config.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/error.hpp"
#include "base/units.hpp"
#include "sink/hiredis/pipeline.hpp"
#include "sink/redis/command.hpp"
#include "sink/redis/script.hpp"

namespace outbox::sink::redis {
namespace {

using namespace std::chrono_literals;

constexpr const char* kPlace = "the name of the stream is the subscription's topic";

constexpr hiredis::Hints kHints{
    .memory =
        "maxmemory is reached: trim streams that were consumed (XTRIM), raise maxmemory, or set redis.max_length",
    .rights =
        "the user of this sink needs: +evalsha +script|load +xadd +exists +set +pexpire +select +info +wait "
        "+config|get ~STREAM ~outbox:dedup:*",
    .type =
        "the key is there and is no stream: remove or rename it, or change the subscription's topic",
    .commands =
        "the server lacks the command, or it was renamed or disabled: streams need Redis 5.0",
    .refused = ""};

SettingRows<RedisSettings> stream_rows() {
  return {
      {"dedup_window", &RedisSettings::dedup_window, Traits{.range = {0s, 30 * 24h}},
       "An event that is sent again within this time is not added again. 0: it is. Each event of that time takes memory of the server."},
      {"max_length", &RedisSettings::max_length, Traits{.range = {0, 1'000'000'000'000}},
       "Removes the oldest entries of a stream, read or not, when it has more than about so many. 0: none."},
  };
}

void check(const RedisSettings& settings, FieldErrors& errors) {
  (void)hiredis::parse_options("redis", settings, kPlace, errors);
}

void check_use(const RedisSettings& /*settings*/, const SubscriptionSpec& spec,
               FieldErrors& errors) {
  if (spec.topic.empty()) errors.add({"topic", "is empty", "it is the name of the stream"});
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the signature of Declaration::make
Result<std::unique_ptr<Sink>> make(RedisSettings settings) {
  OUTBOX_TRY(auto options, read_valid(hiredis::parse_options, "redis", settings, kPlace));
  return std::make_unique<hiredis::PipelineSink>(
      std::move(options), make_purpose(settings),
      std::make_unique<Command>(settings.dedup_window, settings.max_length));
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the signature of Declaration::inspect
Result<Inspection> inspect(RedisSettings settings, const SubscriptionSpec&) {
  OUTBOX_TRY(const auto options, read_valid(hiredis::parse_options, "redis", settings, kPlace));
  OUTBOX_TRY(hiredis::Session session, open_session(options, make_purpose(settings)));
  return std::move(session.inspection);
}

}  // namespace

hiredis::Purpose make_purpose(const RedisSettings& settings) {
  hiredis::Purpose purpose{
      .sink = "redis",
      .attribute_prefix = kAttributePrefix,
      .script = kScript,
      .trial = {},
      .duplicates = "after a lost answer, a crash of the relay or a takeover",
      .order = "of each key in a stream",
      .weaknesses = {},
      .hints = kHints,
      .eviction = {.any_key = "when memory is full the server removes whole streams",
                   .expiring_keys =
                       "when memory is full the server forgets ids, and events may come twice"}};
  if (settings.dedup_window.count() > 0) {
    purpose.trial = {"SET", std::string(kDedupPrefix) + "check", "", "PX", "1"};
    purpose.duplicates =
        fmt::format("only when more than {} lie between", format_duration(settings.dedup_window));
  }
  if (settings.max_length > 0) {
    purpose.weaknesses.push_back(
        {fmt::format("max_length = {}", settings.max_length),
         "the oldest events of a longer stream are removed, whether they were read or not",
         "leave out redis.max_length and let consumers trim"});
  }
  return purpose;
}

const Declaration<RedisSettings>& declaration() {
  static const Declaration<RedisSettings> redis{
      .name = "redis",
      .help = "adds events to Redis Streams, each once within a window",
      .rows = joined({hiredis::server_rows<RedisSettings>(), stream_rows()}),
      .check = check,
      .check_use = check_use,
      .make = make,
      .inspect = inspect};
  return redis;
}

SinkKind kind() { return make_kind(declaration()); }

}  // namespace outbox::sink::redis
