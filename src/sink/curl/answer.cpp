#include "sink/curl/answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "base/units.hpp"
#include "event/utf8.hpp"

namespace outbox::sink::curl {
namespace {

using Kind = Outcome::Kind;

constexpr std::size_t kExcerptBytes = 200;
/// The longest pause that a receiver may ask for.
constexpr std::chrono::seconds kLongestPause{3600};

/// A failure of libcurl. In the hint {0} is the sink and {1} the setting with its address.
struct Failure {
  CURLcode code;
  Errc errc;
  const char* hint;
};

constexpr const char* kReach = "check {0}.{1}, the network, and that the receiver runs";
constexpr const char* kTrust =
    "the receiver's certificate is not valid for this name, or not signed by an authority known here; {0}.tls_ca names "
    "another one";
constexpr const char* kTls =
    "the receiver must speak TLS 1.2 or later; does {0}.{1} name the right port?";
constexpr const char* kProxy = "check {0}.proxy";

/// The failures that prevent a connection.
constexpr Failure kFailures[] = {
    {CURLE_COULDNT_RESOLVE_PROXY, Errc::unavailable, kProxy},
    {CURLE_COULDNT_RESOLVE_HOST, Errc::unavailable, kReach},
    {CURLE_COULDNT_CONNECT, Errc::unavailable, kReach},
    {CURLE_OPERATION_TIMEDOUT, Errc::unavailable, kReach},
    {CURLE_SSL_CONNECT_ERROR, Errc::unavailable, kTls},
    {CURLE_PEER_FAILED_VERIFICATION, Errc::permission_denied, kTrust},
    {CURLE_SSL_ISSUER_ERROR, Errc::permission_denied, kTrust},
    {CURLE_SSL_CACERT_BADFILE, Errc::invalid_argument, "check the file of {0}.tls_ca"},
    {CURLE_SSL_CERTPROBLEM, Errc::invalid_argument,
     "check the files of {0}.tls_certificate and {0}.tls_key"},
    {CURLE_SSL_CIPHER, Errc::unsupported, kTls},
    {CURLE_PROXY, Errc::unavailable, kProxy},
};

const Failure* find_failure(CURLcode code) {
  const auto found = std::find_if(std::begin(kFailures), std::end(kFailures),
                                  [&](const Failure& one) { return one.code == code; });
  return found == std::end(kFailures) ? nullptr : found;
}

std::string hint_for(const char* hint, const Receiver& receiver) {
  return fmt::format(fmt::runtime(hint), receiver.sink, receiver.setting);
}

/// libcurl's text for this transfer, or else its text for the code.
std::string curl_words(const Answer& answer) {
  return answer.curl_text.empty() ? curl_easy_strerror(answer.code) : answer.curl_text;
}

std::string curl_origin(CURLcode code) { return fmt::format("curl:{}", static_cast<int>(code)); }

/// The outcome when something of the request was sent and no whole answer came.
Outcome in_doubt(const Answer& answer, const Receiver& receiver) {
  Outcome outcome;
  std::string message;
  const char* hint = receiver.in_doubt;
  if (answer.status != 0) {
    message = fmt::format("{}: {} answered {}, but its answer broke off: {}", receiver.sink,
                          receiver.address, answer.status, curl_words(answer));
  } else if (answer.code == CURLE_OPERATION_TIMEDOUT) {
    message = fmt::format("{}: {} did not answer within {}", receiver.sink, receiver.address,
                          format_duration(receiver.deadline));
    hint = receiver.too_slow;
  } else {
    message = fmt::format("{}: the connection to {} failed before it answered: {}", receiver.sink,
                          receiver.address, curl_words(answer));
  }
  outcome.error = make_error(Errc::unavailable, Kind::unknown, std::move(message), hint,
                             curl_origin(answer.code));
  return outcome;
}

Outcome no_tunnel(const Answer& answer, const Receiver& receiver) {
  return {.kind = Kind::blocked,
          .error = make_error(
              Errc::unavailable, Kind::blocked,
              fmt::format("{}: the proxy answered {} when asked for a connection to {}",
                          receiver.sink, answer.proxy_status, receiver.address),
              hint_for("check {0}.proxy, the user and the password in it, and what it allows",
                       receiver),
              fmt::format("http:{}", answer.proxy_status))};
}

/// The error when the connection could not be made.
Error unreachable(const Answer& answer, const Receiver& receiver) {
  if (!answer.refused.empty()) {
    return make_error(
        Errc::permission_denied, Kind::blocked,
        fmt::format("{}: {} is at {}, where this sink must not connect to", receiver.sink,
                    receiver.address, answer.refused),
        hint_for(
            "a name that leads into your own network may be an attack; if it is meant, add the network to "
            "{0}.allow_networks",
            receiver),
        "");
  }
  if (answer.code == CURLE_ABORTED_BY_CALLBACK) {
    return make_error(Errc::cancelled, Kind::retry,
                      fmt::format("{}: a request to {} was given up before it was sent",
                                  receiver.sink, receiver.address),
                      "", "");
  }
  const Failure* const failure = find_failure(answer.code);
  return make_error(failure == nullptr ? Errc::unavailable : failure->errc, Kind::retry,
                    fmt::format("{}: cannot connect to {}: {}", receiver.sink, receiver.address,
                                curl_words(answer)),
                    hint_for(failure == nullptr ? kReach : failure->hint, receiver),
                    curl_origin(answer.code));
}

Outcome not_sent(const Answer& answer, const Receiver& receiver) {
  Outcome outcome;
  outcome.kind = find_failure(answer.code) != nullptr ? Kind::blocked : Kind::retry;
  outcome.error = unreachable(answer, receiver);
  return outcome;
}

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  if (what.empty()) return;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
}

/// Whether the UTF-8 character is printed; an empty one stands for invalid UTF-8.
bool is_shown(std::string_view character) {
  return !character.empty() && character != " " && !has_control(character);
}

}  // namespace

Error make_error(Errc code, Kind kind, std::string message, std::string hint, std::string origin) {
  return {.code = code,
          .remedy = code == Errc::unavailable ? Remedy::retry_call : Remedy::fix,
          .effect = kind == Kind::unknown ? Effect::unknown : Effect::none,
          .message = std::move(message),
          .hint = std::move(hint),
          .origin = std::move(origin)};
}

std::optional<Outcome> unanswered(const Answer& answer, const Receiver& receiver) {
  if (answer.proxy_status >= 300) return no_tunnel(answer, receiver);
  if (answer.status >= 300 || (answer.success() && answer.whole())) return std::nullopt;
  if (answer.sent || answer.success()) return in_doubt(answer, receiver);
  return not_sent(answer, receiver);
}

std::optional<Duration> read_pause(const Answer& answer) {
  if (answer.retry_after.count() <= 0) return std::nullopt;
  return std::min(answer.retry_after, kLongestPause);
}

std::string excerpt(std::string_view body, const std::vector<std::string>& secrets) {
  std::string text(body);
  for (const std::string& secret : secrets) replace_all(text, secret, "***");
  std::string line;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    const std::size_t size = event::utf8_length(at, end);
    if (is_shown({at, size})) {
      line.append(at, size);
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
    at += std::max<std::size_t>(size, 1);
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  if (line.size() <= kExcerptBytes) return line;
  std::size_t cut = kExcerptBytes;
  // Moves back to the beginning of a character.
  while ((static_cast<unsigned char>(line[cut]) & 0xc0U) == 0x80U) --cut;
  return line.substr(0, cut) + "...";
}

}  // namespace outbox::sink::curl
