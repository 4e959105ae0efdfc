#include "sink/http/answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace outbox::sink::http {
namespace {

using Kind = Outcome::Kind;

constexpr const char* kBody =
    "the receiver refuses this event; what it answers, or its log, says why";
constexpr const char* kSize =
    "the event is larger than the receiver accepts; raise its limit, or store large content elsewhere and send a reference";
constexpr const char* kRights =
    "check http.authorization, or http.username and http.password, and what the receiver allows them";
constexpr const char* kAddress = "check http.url and http.method";
constexpr const char* kMoved =
    "redirects are not followed, since they would send events to anywhere; set http.url to the new address";
constexpr const char* kGone =
    "the receiver has given this address up; change http.url, or remove the subscription";
constexpr const char* kPace =
    "the receiver asks for fewer requests; lower http.concurrency, or set http.batch";
constexpr const char* kBroken = "the receiver, or a gateway before it, failed; see its log";
constexpr const char* kProtocol =
    "the receiver does not support such requests; check http.url and http.method";

struct Meaning {
  long status;
  Kind kind;
  Errc code;
  const char* hint;
};

/// RFC 9110, 15; Standard Webhooks for 410, 429. Others count as the first status of their class.
constexpr Meaning kMeanings[] = {
    {300, Kind::blocked, Errc::invalid_argument, kMoved},
    {400, Kind::rejected, Errc::invalid_argument, kBody},
    {401, Kind::blocked, Errc::permission_denied, kRights},
    {402, Kind::blocked, Errc::permission_denied, kRights},
    {403, Kind::blocked, Errc::permission_denied, kRights},
    {404, Kind::blocked, Errc::not_found, kAddress},
    {405, Kind::blocked, Errc::unsupported, kAddress},
    {407, Kind::blocked, Errc::permission_denied, "check the user and the password in http.proxy"},
    // The receiver did not get the whole request, or does not yet take one that might be a copy.
    {408, Kind::retry, Errc::unavailable, kBroken},
    // The receiver is working on the same request, or on another one of the same key.
    {409, Kind::retry, Errc::unavailable, kBody},
    {410, Kind::blocked, Errc::not_found, kGone},
    {411, Kind::blocked, Errc::unsupported, kProtocol},
    {413, Kind::rejected, Errc::too_large, kSize},
    {417, Kind::blocked, Errc::unsupported, kProtocol},
    // Another connection may reach the right server.
    {421, Kind::retry, Errc::unavailable, kBroken},
    {423, Kind::retry, Errc::unavailable, kBody},
    {425, Kind::retry, Errc::unavailable, kBroken},
    {426, Kind::blocked, Errc::unsupported, kProtocol},
    // A limit of rates hits single events between others that pass; `rejected` would park them.
    {429, Kind::blocked, Errc::unavailable, kPace},
    {451, Kind::blocked, Errc::permission_denied, kGone},
    // Not `retry`: the receiver, or the gateway before it, may have failed after the work was done.
    {500, Kind::unknown, Errc::unavailable, kBroken},
    {501, Kind::blocked, Errc::unsupported, kProtocol},
    // Not `blocked`: an event that makes the receiver crash gets this answer, too.
    {503, Kind::retry, Errc::unavailable, kBroken},
    {505, Kind::blocked, Errc::unsupported, kProtocol},
    {511, Kind::blocked, Errc::permission_denied,
     "something between here and the receiver wants a login"},
};

const Meaning& find_meaning(long status) {
  const auto find = [](long wanted) {
    return std::find_if(std::begin(kMeanings), std::end(kMeanings),
                        [&](const Meaning& one) { return one.status == wanted; });
  };
  const auto found = find(status);
  return found != std::end(kMeanings) ? *found : *find(std::clamp(status / 100, 3L, 5L) * 100);
}

Outcome answered(const Answer& answer, const RequestContext& context) {
  const Meaning& meaning = find_meaning(answer.status);
  Outcome outcome;
  outcome.kind = meaning.kind;
  // When the URL depends on the event, a missing address may be that event's fault alone.
  if (context.url_varies && meaning.code == Errc::not_found) outcome.kind = Kind::rejected;
  std::string message = fmt::format("http: {} answered {}", context.origin, answer.status);
  const std::string quote = excerpt(answer.body, *context.secrets);
  if (!quote.empty()) message += fmt::format(": \"{}\"", quote);
  outcome.error = curl::make_error(meaning.code, outcome.kind, std::move(message), meaning.hint,
                                   fmt::format("http:{}", answer.status));
  if (answer.status == 429 || answer.status == 503) outcome.retry_after = curl::read_pause(answer);
  return outcome;
}

curl::Receiver make_receiver(const RequestContext& context) {
  return {
      .sink = "http",
      .address = context.origin,
      .setting = "url",
      .deadline = context.deadline,
      .in_doubt =
          "the event is sent again with the same webhook-id, by which the receiver can drop it",
      .too_slow =
          "a receiver should store the event and answer before it works on it; http.deadline is the limit"};
}

}  // namespace

Outcome judge(const Answer& answer, const RequestContext& context) {
  if (auto outcome = curl::unanswered(answer, make_receiver(context))) return std::move(*outcome);
  if (answer.success()) return {.kind = Kind::acked};
  return answered(answer, context);
}

}  // namespace outbox::sink::http
