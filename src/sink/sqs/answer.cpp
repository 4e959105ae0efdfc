#include "sink/sqs/answer.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/json.hpp"
#include "base/text.hpp"
#include "sink/sqs/error_map.hpp"

namespace outbox::sink::sqs {
namespace {

using Json = nlohmann::json;
using Kind = Outcome::Kind;

constexpr const char* kNonsense =
    "something other than SQS answers there? the events are sent again";

/// The first of these members that is a text; empty if there is none.
std::string read_text(const Json& object, std::initializer_list<const char*> names) {
  if (!object.is_object()) return {};
  for (const char* name : names) {
    const auto found = object.find(name);
    if (found != object.end() && found->is_string()) return found->get<std::string>();
  }
  return {};
}

bool is_true(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

curl::Receiver make_receiver(const RequestContext& context) {
  return {
      .sink = "sqs",
      .address = context.address,
      .setting = context.setting,
      .deadline = context.deadline,
      .in_doubt =
          "the events are sent again; a FIFO queue drops what it has stored in the last five minutes",
      .too_slow = "SQS answers within a second when it is well; check the network"};
}

/// The message "sqs: queue 'orders': QueueDoesNotExist: \"it is not there\"".
std::string write_message(const RequestContext& context, const std::string& what,
                          std::string_view said) {
  std::string message = fmt::format("sqs: queue {}: {}", in_quotes(context.queue), what);
  const std::string quote = curl::excerpt(said, *context.secrets);
  return quote.empty() ? message : message + fmt::format(": \"{}\"", quote);
}

Outcome make_outcome(const Meaning& meaning, std::string message, const std::string& origin) {
  Outcome outcome;
  outcome.kind = meaning.kind;
  outcome.error =
      curl::make_error(meaning.code, meaning.kind, std::move(message), meaning.hint, origin);
  return outcome;
}

Outcome nonsense(const RequestContext& context, Kind kind, const char* what) {
  return make_outcome(
      {.kind = kind, .code = Errc::unavailable, .hint = kNonsense},
      write_message(context, fmt::format("{} answered 200 {}", context.address, what), ""),
      "http:200");
}

Outcome refused(const Answer& answer, const RequestContext& context) {
  const Json body = try_parse_json<Json>(answer.body);
  const std::string code = short_code(read_text(body, {"__type", "code", "Code"}));
  Meaning meaning = find_meaning(code, answer.status);
  // A 400 without its code may mean anything: nothing was stored, perhaps through no event's fault.
  if (answer.status == 400 && code.empty() && !answer.whole()) meaning.kind = Kind::retry;
  // If the queue depends on the event, a missing one may be that event's fault alone.
  if (context.queue_varies && meaning.code == Errc::not_found) meaning.kind = Kind::rejected;
  const std::string said =
      body.is_object() ? read_text(body, {"message", "Message"}) : std::string(answer.body);
  const std::string what =
      code.empty() ? fmt::format("{} answered {}", context.address, answer.status) : code;
  Outcome outcome =
      make_outcome(meaning, write_message(context, what, said),
                   code.empty() ? fmt::format("http:{}", answer.status) : "sqs:" + code);
  if (meaning.kind != Kind::rejected) outcome.retry_after = curl::read_pause(answer);
  return outcome;
}

/// The place of an entry by its id; nullopt if the id is not ours.
std::optional<std::size_t> read_place(const Json& entry, std::size_t entries) {
  const std::string id = read_text(entry, {"Id"});
  for (std::size_t place = 0; place < entries; ++place) {
    if (id == std::to_string(place)) return place;
  }
  return std::nullopt;
}

Outcome failed_entry(const Json& entry, const RequestContext& context) {
  const std::string code = short_code(read_text(entry, {"Code"}));
  const Meaning meaning = meaning_of_entry(code, is_true(entry, "SenderFault"));
  return make_outcome(meaning, write_message(context, code, read_text(entry, {"Message"})),
                      "sqs:" + code);
}

}  // namespace

std::optional<Outcome> find_failure(const Answer& answer, const RequestContext& context) {
  if (auto outcome = curl::unanswered(answer, make_receiver(context))) return outcome;
  if (answer.success()) return std::nullopt;
  return refused(answer, context);
}

std::vector<Outcome> read_outcomes(const Answer& answer, std::size_t entries,
                                   const RequestContext& context) {
  const Json body = try_parse_json<Json>(answer.body);
  std::vector<std::optional<Outcome>> found(entries);
  const auto settle = [&](const Json& entry, Outcome outcome) {
    const auto place = read_place(entry, entries);
    if (!place) return;
    auto& slot = found[*place];
    slot = slot ? nonsense(context, Kind::unknown, "with two results for this event")
                : std::move(outcome);
  };
  const auto each = [&](const char* name, const auto& outcome_for) {
    const auto list = body.is_object() ? body.find(name) : body.end();
    if (list == body.end() || !list->is_array()) return;
    for (const Json& entry : *list) {
      if (entry.is_object()) settle(entry, outcome_for(entry));
    }
  };
  each("Successful", [](const Json&) { return Outcome{.kind = Kind::acked}; });
  each("Failed", [&](const Json& entry) { return failed_entry(entry, context); });
  std::vector<Outcome> outcomes;
  for (auto& one : found) {
    outcomes.push_back(one ? std::move(*one)
                           : nonsense(context, Kind::unknown, "without a result for this event"));
  }
  return outcomes;
}

tl::expected<std::string, Outcome> read_queue_url(const Answer& answer,
                                                  const RequestContext& context) {
  std::string url = read_text(try_parse_json<Json>(answer.body), {"QueueUrl"});
  if (url.empty())
    return tl::unexpected(nonsense(context, Kind::blocked, "without the queue's URL"));
  return url;
}

}  // namespace outbox::sink::sqs
