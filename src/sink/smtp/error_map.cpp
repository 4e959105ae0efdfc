#include "sink/smtp/error_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/units.hpp"
#include "sink/curl/answer.hpp"

namespace outbox::sink::smtp {
namespace {

using Kind = Outcome::Kind;

/// Reply codes of RFC 5321, 4.2.1 and RFC 4954, 6.
constexpr int kFirstRefusal = 400;
constexpr int kFirstFinal = 500;
constexpr int kClosing = 421;
constexpr int kTooLarge = 552;
constexpr int kOfLogin[] = {530, 534, 535, 538};

constexpr const char* kReach = "check smtp.url, the network, and that the server runs";
constexpr const char* kRefuses = "the server accepts nobody, or not this machine; its log says why";
constexpr const char* kHello =
    "the server does not accept the name that this machine gives; set smtp.hello to its full name";
constexpr const char* kNoTls =
    "does smtp.url name the right port? smtps:// is encrypted from the first byte (usually port 465), smtp:// "
    "with STARTTLS (usually 587). A server on this machine without TLS needs smtp.tls = \"off\"";
constexpr const char* kLogin =
    "check smtp.username and smtp.password, and that the server lets this user log in with a password";
constexpr const char* kSender =
    "check smtp.from, and that the server lets this user send with that address";
constexpr const char* kLater =
    "the mail is sent again; servers that do not know a sender answer so at first (greylisting)";
constexpr const char* kRejected =
    "what the server says is about this recipient or this mail; send the event corrected (outbox parked edit), or "
    "discard it";
constexpr const char* kSize =
    "the mail is larger than the server accepts; raise its limit, or send a link instead";
constexpr const char* kAgain =
    "the mail is sent again with the same Message-ID, by which the recipient's server may drop it";
constexpr const char* kPark =
    "whether it was sent is in the server's log, by its Message-ID; then discard the event (outbox parked discard), or send it "
    "again (outbox parked retry)";

struct Failure {
  CURLcode code;
  Errc errc;
  const char* hint;
};

/// The failures that prevent a connection.
constexpr Failure kFailures[] = {
    {CURLE_COULDNT_RESOLVE_HOST, Errc::unavailable, kReach},
    {CURLE_COULDNT_CONNECT, Errc::unavailable, kReach},
    {CURLE_OPERATION_TIMEDOUT, Errc::unavailable,
     "is it a mail server, and does smtp.url name the right port? smtp.connect_timeout is the limit"},
    {CURLE_USE_SSL_FAILED, Errc::unsupported, kNoTls},
    {CURLE_SSL_CONNECT_ERROR, Errc::unavailable, kNoTls},
    {CURLE_PEER_FAILED_VERIFICATION, Errc::permission_denied,
     "the server's certificate is not valid for this name, or not signed by an authority known here; smtp.tls_ca names "
     "another one"},
    {CURLE_SSL_ISSUER_ERROR, Errc::permission_denied,
     "the server's certificate is not signed by an authority known here; smtp.tls_ca names another one"},
    {CURLE_SSL_CACERT_BADFILE, Errc::invalid_argument, "check the file of smtp.tls_ca"},
    {CURLE_SSL_CERTPROBLEM, Errc::invalid_argument,
     "check the files of smtp.tls_certificate and smtp.tls_key"},
    {CURLE_SSL_CIPHER, Errc::unsupported, "the server must speak TLS 1.2 or later"},
    {CURLE_LOGIN_DENIED, Errc::permission_denied, kLogin},
};

const Failure* find_failure(CURLcode code) {
  const auto found = std::find_if(std::begin(kFailures), std::end(kFailures),
                                  [&](const Failure& one) { return one.code == code; });
  return found == std::end(kFailures) ? nullptr : found;
}

bool is_of_login(int reply) {
  return std::find(std::begin(kOfLogin), std::end(kOfLogin), reply) != std::end(kOfLogin);
}

std::string doing(const Ending& ending) {
  switch (ending.stage) {
    case Stage::connect: return "the connection";
    case Stage::hello: return "EHLO";
    case Stage::tls: return "STARTTLS";
    case Stage::login: return "the login";
    case Stage::sender: return "MAIL";
    case Stage::recipients: return fmt::format("RCPT (recipient {})", ending.recipient);
    case Stage::data: return "DATA";
    case Stage::content: return "the mail";
  }
  return "";
}

/// libcurl's text for this transfer, or else its text for the code.
std::string curl_words(const Ending& ending) {
  return ending.curl_text.empty() ? curl_easy_strerror(ending.code) : ending.curl_text;
}

std::string describe_origin(const Ending& ending) {
  return ending.reply >= kFirstRefusal ? fmt::format("smtp:{}", ending.reply)
                                       : fmt::format("curl:{}", static_cast<int>(ending.code));
}

Error make_error(Errc code, Effect effect, std::string message, const char* hint,
                 std::string origin) {
  return {.code = code,
          .remedy = code == Errc::unavailable ? Remedy::retry_call : Remedy::fix,
          .effect = effect,
          .message = std::move(message),
          .hint = hint,
          .origin = std::move(origin)};
}

// ---- the server refuses

struct Meaning {
  Kind kind;
  Errc code;
  const char* hint;
};

/// Before the recipients an answer concerns the mail only if its size, which MAIL declares, is
/// refused (RFC 1870, 6.1).
Meaning meaning_before_recipients(Stage stage, int reply) {
  switch (stage) {
    case Stage::hello: return {Kind::blocked, Errc::unavailable, kHello};
    case Stage::tls: return {Kind::blocked, Errc::unavailable, kNoTls};
    case Stage::login: return {Kind::blocked, Errc::permission_denied, kLogin};
    case Stage::sender:
      if (reply == kTooLarge) return {Kind::rejected, Errc::too_large, kSize};
      return {Kind::blocked, reply < kFirstFinal ? Errc::unavailable : Errc::permission_denied,
              kSender};
    default: return {Kind::blocked, Errc::unavailable, kRefuses};
  }
}

Meaning find_meaning(Stage stage, int reply) {
  if (is_of_login(reply)) return {Kind::blocked, Errc::permission_denied, kLogin};
  if (stage < Stage::recipients) return meaning_before_recipients(stage, reply);
  // Not `blocked`: a single recipient or a single mail may be put off this way.
  if (reply < kFirstFinal) return {Kind::retry, Errc::unavailable, kLater};
  if (reply == kTooLarge) return {Kind::rejected, Errc::too_large, kSize};
  return {Kind::rejected, Errc::invalid_argument, kRejected};
}

Error refusal(const Ending& ending, const MailContext& context, const Meaning& meaning) {
  std::string message =
      fmt::format("smtp: {} answered {} to {}", context.server, ending.reply, doing(ending));
  const std::string quote = curl::excerpt(ending.reply_text, context.unquoted);
  if (!quote.empty()) message += fmt::format(": \"{}\"", quote);
  return make_error(meaning.code, Effect::none, std::move(message), meaning.hint,
                    describe_origin(ending));
}

Outcome refused(const Ending& ending, const MailContext& context) {
  const Meaning meaning = find_meaning(ending.stage, ending.reply);
  return {.kind = meaning.kind, .error = refusal(ending, context, meaning)};
}

// ---- there was no answer

Outcome in_doubt(const Ending& ending, const MailContext& context) {
  std::string message =
      ending.code == CURLE_OPERATION_TIMEDOUT
          ? fmt::format("smtp: {} did not confirm the mail within {}, which it may have sent",
                        context.server, format_duration(context.deadline))
          : fmt::format("smtp: {} got the mail and may have sent it, but its answer was lost: {}",
                        context.server, curl_words(ending));
  if (!context.message_id.empty()) message += fmt::format(" (Message-ID {})", context.message_id);
  Outcome outcome;
  outcome.kind = context.park_unknown ? Kind::rejected : Kind::unknown;
  outcome.error = make_error(Errc::unavailable, Effect::unknown, std::move(message),
                             context.park_unknown ? kPark : kAgain, describe_origin(ending));
  return outcome;
}

Outcome not_sent(const Ending& ending, const MailContext& context) {
  const bool connected = ending.stage >= Stage::sender;
  const bool given_up = ending.code == CURLE_ABORTED_BY_CALLBACK;
  return {.kind = connected || given_up ? Kind::retry : Kind::blocked,
          .error = unreachable(ending, context)};
}

}  // namespace

Outcome judge(const Ending& ending, const MailContext& context) {
  const bool confirmed = ending.reply >= 200 && ending.reply < 300;
  if (ending.stage == Stage::content && confirmed) return {.kind = Kind::acked};
  if (ending.reply >= kFirstRefusal) return refused(ending, context);
  if (ending.stage == Stage::content && ending.whole) return in_doubt(ending, context);
  return not_sent(ending, context);
}

Error unreachable(const Ending& ending, const MailContext& context) {
  if (ending.reply >= kFirstRefusal)
    return refusal(ending, context, find_meaning(ending.stage, ending.reply));
  if (ending.code == CURLE_ABORTED_BY_CALLBACK) {
    return make_error(
        Errc::cancelled, Effect::none,
        fmt::format("smtp: a mail to {} was given up before it was sent", context.server), "", "");
  }
  if (ending.stage >= Stage::sender) {
    return make_error(Errc::unavailable, Effect::none,
                      fmt::format("smtp: the connection to {} failed at {}: {}", context.server,
                                  doing(ending), curl_words(ending)),
                      "the server did not get the mail, which is sent again",
                      describe_origin(ending));
  }
  const Failure* const failure = find_failure(ending.code);
  return make_error(
      failure == nullptr ? Errc::unavailable : failure->errc, Effect::none,
      fmt::format("smtp: cannot connect to {}: {}", context.server, curl_words(ending)),
      failure == nullptr ? kReach : failure->hint, describe_origin(ending));
}

bool was_stale(const Ending& ending) {
  if (!ending.reused || ending.code == CURLE_OPERATION_TIMEDOUT ||
      ending.code == CURLE_ABORTED_BY_CALLBACK)
    return false;
  const bool before = ending.stage == Stage::connect || ending.stage == Stage::sender;
  return before && (ending.reply == 0 || ending.reply == kClosing);
}

}  // namespace outbox::sink::smtp
