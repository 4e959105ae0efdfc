#include "sink/http/answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/units.hpp"
#include "sink/excerpt.hpp"

namespace outbox::sink::http {
namespace {

using Kind = Outcome::Kind;

/// A receiver cannot stop a subscription for longer than this.
constexpr std::chrono::seconds kLongestPause{3600};

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

/// RFC 9110, 15; Standard Webhooks for 410 and 429. A status that is not here counts as the first of its class (RFC 9110, 15).
constexpr Meaning kMeanings[] = {
    {300, Kind::blocked, Errc::invalid_argument, kMoved},
    {400, Kind::rejected, Errc::invalid_argument, kBody},
    {401, Kind::blocked, Errc::permission_denied, kRights},
    {402, Kind::blocked, Errc::permission_denied, kRights},
    {403, Kind::blocked, Errc::permission_denied, kRights},
    {404, Kind::blocked, Errc::not_found, kAddress},
    {405, Kind::blocked, Errc::unsupported, kAddress},
    {407, Kind::blocked, Errc::permission_denied, "check the user and the password in http.proxy"},
    // It did not get the whole request, or will not yet take one that might be a copy.
    {408, Kind::retry, Errc::unavailable, kBroken},
    // The same request is being worked on, or something of its key is.
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
    // Limits of rates hit single events between others that pass: as a failure of theirs it would park them.
    {429, Kind::blocked, Errc::unavailable, kPace},
    {451, Kind::blocked, Errc::permission_denied, kGone},
    // Not `retry`: the receiver may have done its work before it, or the gateway before it, failed.
    {500, Kind::unknown, Errc::unavailable, kBroken},
    {501, Kind::blocked, Errc::unsupported, kProtocol},
    // Not `blocked`: an event that makes the receiver crash is answered so too.
    {503, Kind::retry, Errc::unavailable, kBroken},
    {505, Kind::blocked, Errc::unsupported, kProtocol},
    {511, Kind::blocked, Errc::permission_denied,
     "something between here and the receiver wants a login"},
};

const Meaning& meaning_of(long status) {
  const auto find = [](long wanted) {
    return std::find_if(std::begin(kMeanings), std::end(kMeanings),
                        [&](const Meaning& one) { return one.status == wanted; });
  };
  const auto found = find(status);
  return found != std::end(kMeanings) ? *found : *find(std::clamp(status / 100, 3L, 5L) * 100);
}

struct Failure {
  CURLcode code;
  Errc errc;
  const char* hint;
};

constexpr const char* kReach = "check http.url, the network, and that the receiver runs";
constexpr const char* kTrust =
    "the receiver's certificate is not valid for this name, or not signed by an authority known here; http.tls_ca names "
    "another one";
constexpr const char* kTls =
    "the receiver must speak TLS 1.2 or later; does http.url name the right port?";

/// Those that prevent a connection.
constexpr Failure kFailures[] = {
    {CURLE_COULDNT_RESOLVE_PROXY, Errc::unavailable, "check http.proxy"},
    {CURLE_COULDNT_RESOLVE_HOST, Errc::unavailable, kReach},
    {CURLE_COULDNT_CONNECT, Errc::unavailable, kReach},
    {CURLE_OPERATION_TIMEDOUT, Errc::unavailable, kReach},
    {CURLE_SSL_CONNECT_ERROR, Errc::unavailable, kTls},
    {CURLE_PEER_FAILED_VERIFICATION, Errc::permission_denied, kTrust},
    {CURLE_SSL_ISSUER_ERROR, Errc::permission_denied, kTrust},
    {CURLE_SSL_CACERT_BADFILE, Errc::invalid_argument, "check the file of http.tls_ca"},
    {CURLE_SSL_CERTPROBLEM, Errc::invalid_argument,
     "check the files of http.tls_certificate and http.tls_key"},
    {CURLE_SSL_CIPHER, Errc::unsupported, kTls},
    {CURLE_PROXY, Errc::unavailable, "check http.proxy"},
};

const Failure* failure_of(CURLcode code) {
  const auto found = std::find_if(std::begin(kFailures), std::end(kFailures),
                                  [&](const Failure& one) { return one.code == code; });
  return found == std::end(kFailures) ? nullptr : found;
}

/// libcurl's own words for this transfer, else for the code.
std::string curl_words(const Answer& answer) {
  return answer.curl_text.empty() ? curl_easy_strerror(answer.code) : answer.curl_text;
}

std::string curl_origin(CURLcode code) { return fmt::format("curl:{}", static_cast<int>(code)); }

Error error_of(Errc code, Kind kind, std::string message, const char* hint, std::string origin) {
  return {.code = code,
          .remedy = code == Errc::unavailable ? Remedy::retry_call : Remedy::fix,
          .effect = kind == Kind::unknown ? Effect::unknown : Effect::none,
          .message = std::move(message),
          .hint = hint,
          .origin = std::move(origin)};
}

Outcome answered(const Answer& answer, const Asked& asked) {
  const Meaning& meaning = meaning_of(answer.status);
  Outcome outcome;
  outcome.kind = meaning.kind;
  // When the URL depends on the event, a missing address may be that event's fault alone.
  if (asked.url_varies && meaning.code == Errc::not_found) outcome.kind = Kind::rejected;
  std::string message = fmt::format("http: {} answered {}", asked.origin, answer.status);
  const std::string quote = excerpt(answer.body, *asked.secrets);
  if (!quote.empty()) message += fmt::format(": \"{}\"", quote);
  outcome.error = error_of(meaning.code, outcome.kind, std::move(message), meaning.hint,
                           fmt::format("http:{}", answer.status));
  const bool may_ask = answer.status == 429 || answer.status == 503;
  if (may_ask && answer.retry_after.count() > 0)
    outcome.retry_after = std::min(answer.retry_after, kLongestPause);
  return outcome;
}

/// Something of the request was sent, and no whole answer came.
Outcome in_doubt(const Answer& answer, const Asked& asked) {
  Outcome outcome;
  std::string message;
  const char* hint =
      "the event is sent again with the same webhook-id, by which the receiver can drop it";
  if (answer.status != 0) {
    message = fmt::format("http: {} answered {}, but its answer broke off: {}", asked.origin,
                          answer.status, curl_words(answer));
  } else if (answer.code == CURLE_OPERATION_TIMEDOUT) {
    message = fmt::format("http: {} did not answer within {}", asked.origin,
                          format_duration(asked.deadline));
    hint =
        "a receiver should store the event and answer before it works on it; http.deadline is the limit";
  } else {
    message = fmt::format("http: the connection to {} failed before it answered: {}", asked.origin,
                          curl_words(answer));
  }
  outcome.error = error_of(Errc::unavailable, Kind::unknown, std::move(message), hint,
                           curl_origin(answer.code));
  return outcome;
}

Outcome no_tunnel(const Answer& answer, const Asked& asked) {
  return {
      .kind = Kind::blocked,
      .error = error_of(Errc::unavailable, Kind::blocked,
                        fmt::format("http: the proxy answered {} when asked for a connection to {}",
                                    answer.proxy_status, asked.origin),
                        "check http.proxy, the user and the password in it, and what it allows",
                        fmt::format("http:{}", answer.proxy_status))};
}

Outcome not_sent(const Answer& answer, const Asked& asked) {
  Outcome outcome;
  outcome.kind = failure_of(answer.code) != nullptr ? Kind::blocked : Kind::retry;
  outcome.error = unreachable(answer, asked);
  return outcome;
}

}  // namespace

Outcome judge(const Answer& answer, const Asked& asked) {
  if (answer.proxy_status >= 300) return no_tunnel(answer, asked);
  const bool whole = answer.code == CURLE_OK || answer.longer;
  const bool success = answer.status >= 200 && answer.status < 300;
  if (success && whole) return {.kind = Kind::acked};
  // A refusal counts even when its explanation is incomplete.
  if (answer.status >= 300) return answered(answer, asked);
  if (answer.sent || success) return in_doubt(answer, asked);
  return not_sent(answer, asked);
}

Error unreachable(const Answer& answer, const Asked& asked) {
  if (!answer.refused.empty()) {
    return error_of(
        Errc::permission_denied, Kind::blocked,
        fmt::format("http: {} is at {}, where this sink must not connect to", asked.origin,
                    answer.refused),
        "a name that leads into your own network may be an attack; if it is meant, add the network to "
        "http.allow_networks",
        "");
  }
  if (answer.code == CURLE_ABORTED_BY_CALLBACK) {
    return error_of(
        Errc::cancelled, Kind::retry,
        fmt::format("http: a request to {} was given up before it was sent", asked.origin), "", "");
  }
  const Failure* const failure = failure_of(answer.code);
  return error_of(failure == nullptr ? Errc::unavailable : failure->errc, Kind::retry,
                  fmt::format("http: cannot connect to {}: {}", asked.origin, curl_words(answer)),
                  failure == nullptr ? kReach : failure->hint, curl_origin(answer.code));
}

}  // namespace outbox::sink::http
