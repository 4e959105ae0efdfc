#include "sink/nats/error_map.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json.hpp"

namespace outbox::sink::nats {
namespace {

using Json = nlohmann::json;
using enum Outcome::Kind;

constexpr const char* kCreateStream =
    "create a stream with this subject; outbox never creates one. Check the name in nats.stream";
constexpr const char* kFull =
    "the stream is full, or its disk is: purge it, raise its limits, or let its consumers catch up";
constexpr const char* kResources = "raise the limits of JetStream for the server or the account";
constexpr const char* kCluster = "check the servers of the stream and that it has a leader";
constexpr const char* kEnable = "enable JetStream on the server and for the account of this user";
constexpr const char* kTooLarge = "raise the stream's max_msg_size";
constexpr const char* kReach = "check nats.url, the network, and that the server runs";

/// A code of NATS 2.9 to 2.12, from server/errors.json. Other codes are judged by `code`.
struct Meaning {
  int err_code;
  Outcome::Kind kind;
  Errc errc;
  const char* hint;
};
constexpr Meaning kMeanings[] = {
    {10054, rejected, Errc::too_large, kTooLarge},
    {10097, rejected, Errc::too_large, "JetStream keeps at most 64 KiB of headers"},
    // Another copy of the message is about to be stored.
    {10158, unknown, Errc::unavailable, ""},
    {10060, blocked, Errc::not_found,
     "the subject belongs to another stream than nats.stream says"},
    {10059, blocked, Errc::not_found, kCreateStream},
    {10109, blocked, Errc::permission_denied, "the stream is sealed: nothing can be added to it"},
    {10077, blocked, Errc::unavailable, kFull},
    {10002, blocked, Errc::unavailable, kResources},
    {10023, blocked, Errc::unavailable, kResources},
    {10028, blocked, Errc::unavailable, kResources},
    {10047, blocked, Errc::unavailable, kResources},
    {10120, blocked, Errc::unavailable, kResources},
    {10122, blocked, Errc::unavailable, kResources},
    {10039, blocked, Errc::unsupported, kEnable},
    {10076, blocked, Errc::unsupported, kEnable},
    {10008, blocked, Errc::unavailable, kCluster},
    {10009, blocked, Errc::unavailable, kCluster},
    {10118, blocked, Errc::unavailable, kCluster},
};

Meaning find_meaning(const Answer& answer) {
  for (const Meaning& meaning : kMeanings) {
    if (meaning.err_code == answer.err_code) return meaning;
  }
  const bool servers = answer.code >= 500 || answer.code == 429 || answer.code == 0;
  if (servers) return {0, blocked, Errc::unavailable, kCluster};
  return {0, rejected, Errc::invalid_argument, "JetStream refuses this message"};
}

Remedy find_remedy(Errc errc) {
  return errc == Errc::unavailable ? Remedy::retry_call : Remedy::fix;
}

std::string read_text(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::uint64_t read_number(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

/// Undoes how Go quotes a text; `cut` says that its end is missing.
Denied unquote(std::string_view text) {
  Denied denied{.subject = {}, .cut = true};
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      denied.cut = false;
      break;
    }
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    denied.subject += text[i];
  }
  return denied;
}

struct ClientMeaning {
  natsStatus status;
  Errc errc;
  Remedy remedy;
  const char* hint;
};
constexpr ClientMeaning kClientMeanings[] = {
    {NATS_CONNECTION_AUTH_FAILED, Errc::permission_denied, Remedy::fix,
     "check nats.username and nats.password, nats.token or nats.credentials_file"},
    {NATS_NOT_PERMITTED, Errc::permission_denied, Remedy::fix, "check the rights of the user"},
    {NATS_SSL_ERROR, Errc::permission_denied, Remedy::fix,
     "check nats.tls_ca, the certificate's host names, and nats.tls_certificate"},
    {NATS_SECURE_CONNECTION_WANTED, Errc::unsupported, Remedy::fix,
     "the server has no TLS: write nats:// in nats.url, or enable TLS on the server"},
    {NATS_NO_SERVER_SUPPORT, Errc::unsupported, Remedy::fix,
     "use a server of version 2.9 or later"},
    {NATS_MAX_PAYLOAD, Errc::too_large, Remedy::fix, "raise max_payload of the server"},
    {NATS_INVALID_ARG, Errc::invalid_argument, Remedy::fix, "check the settings of the sink"},
};

}  // namespace

Answer parse_answer(std::string_view body) {
  const Json json = try_parse_json<Json>(body);
  if (!json.is_object()) return {};
  if (const auto error = json.find("error"); error != json.end() && error->is_object()) {
    return {.kind = Answer::Kind::refused,
            .code = static_cast<int>(read_number(*error, "code")),
            .err_code = static_cast<int>(read_number(*error, "err_code")),
            .text = read_text(*error, "description")};
  }
  if (read_text(json, "stream").empty() || read_number(json, "seq") == 0) return {};
  return {.kind = Answer::Kind::stored};
}

Verdict judge(const Answer& answer, std::string_view subject) {
  if (answer.kind == Answer::Kind::stored) return {.kind = acked};
  if (answer.kind == Answer::Kind::nobody) {
    return {.kind = blocked,
            .error = {.code = Errc::not_found,
                      .remedy = Remedy::fix,
                      .effect = Effect::none,
                      .message = fmt::format("nats: no stream takes subject {}", subject),
                      .hint = kCreateStream,
                      .origin = "nats:503"}};
  }
  const Meaning meaning = find_meaning(answer);
  return {.kind = meaning.kind,
          .error = {.code = meaning.errc,
                    .remedy = find_remedy(meaning.errc),
                    .effect = meaning.kind == unknown ? Effect::unknown : Effect::none,
                    .message = fmt::format(
                        "nats: subject {}: {}", subject,
                        answer.text.empty() ? "JetStream refused the message" : answer.text),
                    .hint = meaning.hint,
                    .origin = fmt::format("nats:{}", answer.err_code)}};
}

std::optional<Denied> parse_denied(std::string_view text) {
  constexpr std::string_view kStart = "Permissions Violation for Publish to \"";
  if (!text.starts_with(kStart)) return std::nullopt;
  return unquote(text.substr(kStart.size()));
}

Error denied_error(std::string_view subject) {
  return {.code = Errc::permission_denied,
          .remedy = Remedy::fix,
          .effect = Effect::none,
          .message = fmt::format("nats: the user may not publish to subject {}", subject),
          .hint = "give the user of this sink the right to publish to it",
          .origin = "nats:permission"};
}

std::string_view client_words(std::string_view text) {
  constexpr std::string_view kEnd = "): ";
  const std::size_t end = text.starts_with('(') ? text.find(kEnd) : std::string_view::npos;
  return end == std::string_view::npos ? text : text.substr(end + kEnd.size());
}

Error describe(natsStatus status, std::string_view what, std::string_view text) {
  ClientMeaning meaning{status, Errc::unavailable, Remedy::reconnect, kReach};
  for (const ClientMeaning& known : kClientMeanings) {
    if (known.status == status) meaning = known;
  }
  return {
      .code = meaning.errc,
      .remedy = meaning.remedy,
      .effect = Effect::none,
      .message = fmt::format("nats: {}: {}", what,
                             text.empty() ? std::string_view(natsStatus_GetText(status)) : text),
      .hint = meaning.hint,
      .origin = fmt::format("nats:client-{}", static_cast<int>(status))};
}

}  // namespace outbox::sink::nats
