// What JetStream says of the streams that a consumer reads.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/units.hpp"
#include "sink/nats/error_map.hpp"
#include "source/nats/nats_source.hpp"

namespace outbox::source::nats {
namespace {

using Json = nlohmann::json;

/// Of a stream with `retention` other than limits nothing stays that every consumer has
/// acknowledged.
void read_keeping(const std::string& stream, const Json& config, Inspection& found) {
  if (config.value("retention", std::string("limits")) != "limits") return;
  const std::chrono::nanoseconds age(config.value("max_age", std::int64_t{0}));
  const auto longest = std::chrono::duration_cast<std::chrono::milliseconds>(age);
  found.add(
      {.longest = longest.count() > 0 ? longest : Keeping::kForever,
       .what = longest.count() > 0
                   ? fmt::format("stream {} keeps messages for {} (max_age)", stream,
                                 format_duration(longest))
                   : fmt::format("stream {} keeps messages without a limit of time (max_age 0)",
                                 stream),
       .shorten = "max_age of the stream"});
}

Status look_at_stream(Client& client, const sink::nats::NatsSettings& settings,
                      const std::string& stream, Inspection& found) {
  const std::string subject = sink::nats::api_prefix(settings) + ".STREAM.INFO." + stream;
  auto reply = client.ask(subject, "", settings.deadline);
  if (!reply && reply.error().code == Errc::permission_denied) {
    found.unasked.push_back(reply.error());
    found.unasked.back().message =
        "whether stream " + stream + " exists, and how long it keeps messages";
    found.unasked.back().hint = "let the user publish to " + subject;
    return {};
  }
  if (!reply) return pass(reply);
  const Json json = try_parse_json<Json>(*reply);
  const sink::nats::Answer answer = sink::nats::parse_answer(*reply);
  if (answer.kind == sink::nats::Answer::Kind::refused && answer.err_code == kNoStream) {
    found.missing.push_back({"stream " + stream + " does not exist",
                             "no message is received; the consumer waits for it",
                             "create it, or correct `read`"});
    return {};
  }
  if (answer.kind == sink::nats::Answer::Kind::refused || !json.is_object() ||
      !json.contains("config") || !json["config"].is_object()) {
    return fail(
        Errc::unsupported,
        fmt::format("nats: stream {}: {}", stream,
                    answer.text.empty() ? "the answer is not one of JetStream" : answer.text),
        "check JetStream on the server, and nats.domain");
  }
  found.reads.push_back("stream " + stream);
  read_keeping(stream, json["config"], found);
  return {};
}

}  // namespace

Result<Inspection> inspect(const sink::nats::NatsSettings& settings,
                           const std::vector<sink::Endpoint>& servers,
                           const std::vector<Reads>& reads) {
  Client::Connector connector;
  OUTBOX_TRY(const auto client, connector.connect(settings, servers));
  Inspection found{.broker = client->server()};
  for (const Reads& one : reads) OUTBOX_TRY(look_at_stream(*client, settings, one.stream, found));
  return found;
}

}  // namespace outbox::source::nats
