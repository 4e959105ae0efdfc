#include "sink/nats/stream_check.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/units.hpp"
#include "sink/nats/error_map.hpp"

namespace outbox::sink::nats {
namespace {

using Json = nlohmann::json;

std::string text_setting(const Json& config, const char* name) {
  const auto found = config.find(name);
  return found != config.end() && found->is_string() ? found->get<std::string>() : std::string();
}
std::int64_t number_setting(const Json& config, const char* name) {
  const auto found = config.find(name);
  return found != config.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}
bool read_flag(const Json& config, const char* name) {
  const auto found = config.find(name);
  return found != config.end() && found->is_boolean() && found->get<bool>();
}

/// The reply as JSON, or the error in it.
Result<Json> parse(std::string_view reply, const std::string& about) {
  Json json = try_parse_json<Json>(reply);
  if (!json.is_object()) {
    return fail(Errc::unsupported,
                fmt::format("nats: {}: the answer is not one of JetStream", about),
                "check that no other program answers on $JS.API, and nats.domain");
  }
  const Answer answer = parse_answer(reply);
  if (answer.kind != Answer::Kind::refused) return json;
  Error error = judge(answer, about).error;
  error.message = fmt::format("nats: {}: {}", about, answer.text);
  return fail(std::move(error));
}

/// Fails if the stream takes no events or never confirms them.
Status check_usable(const std::string& stream, const Json& config) {
  const auto unusable = [&](const char* what, const char* hint) {
    return fail(Errc::unsupported, fmt::format("nats: stream {} {}", stream, what), hint);
  };
  if (read_flag(config, "no_ack"))
    return unusable("has no_ack: it never confirms an event", "set no_ack to false");
  if (read_flag(config, "sealed"))
    return unusable("is sealed: nothing can be added to it", "use another stream");
  if (config.contains("mirror") && config["mirror"].is_object())
    return unusable("is a mirror, which takes no events", "name the stream that it mirrors");
  return {};
}

std::string shown(std::chrono::nanoseconds value) {
  return format_duration(std::chrono::duration_cast<std::chrono::microseconds>(value));
}

bool has_limit(const Json& config) {
  return number_setting(config, "max_msgs") > 0 || number_setting(config, "max_bytes") > 0 ||
         number_setting(config, "max_msgs_per_subject") > 0;
}

}  // namespace

Result<std::vector<Weakness>> check_stream(const std::string& stream, std::string_view reply,
                                           std::chrono::nanoseconds window) {
  OUTBOX_TRY(const Json json, parse(reply, "stream " + stream));
  const Json config = json.value("config", Json::object());
  OUTBOX_TRY(check_usable(stream, config));

  std::vector<Weakness> found;
  if (text_setting(config, "storage") == "memory")
    found.push_back({"storage = memory", "events are lost when its servers restart"});
  if (const auto replicas = number_setting(config, "num_replicas"); replicas < 3) {
    found.push_back(
        {fmt::format("replicas = {}", replicas),
         "a failed server makes it unavailable, and its events are lost with its disk"});
  }
  if (text_setting(config, "discard") == "old" && has_limit(config)) {
    found.push_back(
        {"discard = old",
         "when it is full it removes the oldest events, whether they were read or not"});
  }
  if (text_setting(config, "retention") == "interest") {
    found.push_back(
        {"retention = interest",
         "an event for which there is no consumer yet is removed as soon as it arrives"});
  }
  const std::chrono::nanoseconds duplicates(number_setting(config, "duplicate_window"));
  if (duplicates < window) {
    found.push_back(
        {fmt::format("duplicate_window = {}", shown(duplicates)),
         fmt::format(
             "an event whose answer was lost may be sent again up to {} later, and would be "
             "stored twice",
             shown(window))});
  }
  return found;
}

Status check_account(std::string_view reply) {
  OUTBOX_TRY(parse(reply, "JetStream"));
  return {};
}

}  // namespace outbox::sink::nats
