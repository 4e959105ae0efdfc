#include "sink/sqs/error_map.hpp"

#include <algorithm>
#include <iterator>

#include "base/text.hpp"

namespace outbox::sink::sqs {
namespace {

using Kind = Outcome::Kind;

constexpr const char* kPace =
    "SQS asks for fewer requests; lower sqs.concurrency, or raise the quota (FIFO queues: high throughput mode)";
constexpr const char* kKeys =
    "check sqs.access_key, sqs.secret_key, sqs.session_token and sqs.region, and the clock of this machine";
constexpr const char* kExpired =
    "the credentials have expired; those of a container or an instance are fetched again, others need a new sqs.session_token";
constexpr const char* kRights =
    "allow the key to use sqs:SendMessage on the queue, and sqs:GetQueueUrl if sqs.queue names it";
constexpr const char* kMissing =
    "create the queue, or check sqs.queue, sqs.url, sqs.account and sqs.region";
constexpr const char* kKms =
    "allow the key to use the queue's KMS key (kms:GenerateDataKey, kms:Decrypt), and check that it is enabled";
constexpr const char* kEndpoint =
    "does sqs.endpoint, or sqs.url, name an SQS endpoint of this region that speaks its JSON protocol?";
constexpr const char* kText =
    "set sqs.encoding = \"auto\" or \"base64\", which consumers must then decode";
constexpr const char* kSize =
    "the event is larger than the queue takes (MaximumMessageSize); set sqs.max_batch_bytes to that, or store large content elsewhere";
constexpr const char* kEvent = "SQS refuses this event; its answer says why";
constexpr const char* kBroken = "SQS, or something before it, failed";

struct Known {
  std::string_view code;
  Meaning meaning;
};

constexpr Meaning kThrottled{Kind::blocked, Errc::unavailable, kPace};
constexpr Meaning kDenied{Kind::blocked, Errc::permission_denied, kRights};
constexpr Meaning kUnsigned{Kind::blocked, Errc::permission_denied, kKeys};
constexpr Meaning kOutdated{Kind::blocked, Errc::permission_denied, kExpired};
constexpr Meaning kNoQueue{Kind::blocked, Errc::not_found, kMissing};
constexpr Meaning kNoKms{Kind::blocked, Errc::permission_denied, kKms};
constexpr Meaning kUnsupported{Kind::blocked, Errc::unsupported, kEndpoint};
constexpr Meaning kBadText{Kind::rejected, Errc::invalid_argument, kText};
constexpr Meaning kTooLarge{Kind::rejected, Errc::too_large, kSize};

/// The names of both the JSON and the query protocol, which endpoints and stand-ins mix.
constexpr Known kKnown[] = {
    {"Throttling", kThrottled},
    {"ThrottlingException", kThrottled},
    {"ThrottledException", kThrottled},
    {"RequestThrottled", kThrottled},
    {"RequestThrottledException", kThrottled},
    {"RequestLimitExceeded", kThrottled},
    {"TooManyRequestsException", kThrottled},
    {"SlowDown", kThrottled},
    {"OverLimit", kThrottled},
    {"KmsThrottled", kThrottled},
    {"AccessDenied", kDenied},
    {"AccessDeniedException", kDenied},
    {"NotAuthorized", kDenied},
    {"AuthFailure", kDenied},
    {"UnauthorizedOperation", kDenied},
    {"OptInRequired", kDenied},
    {"AccountProblem", kDenied},
    {"InvalidSecurity", {Kind::blocked, Errc::permission_denied, "SQS requires TLS; use https"}},
    {"InvalidClientTokenId", kUnsigned},
    {"InvalidAccessKeyId", kUnsigned},
    {"UnrecognizedClientException", kUnsigned},
    {"SignatureDoesNotMatch", kUnsigned},
    {"InvalidSignatureException", kUnsigned},
    {"IncompleteSignature", kUnsigned},
    {"IncompleteSignatureException", kUnsigned},
    {"MissingAuthenticationToken", kUnsigned},
    {"MissingAuthenticationTokenException", kUnsigned},
    {"RequestExpired", kUnsigned},
    {"RequestTimeTooSkewed", kUnsigned},
    {"ExpiredToken", kOutdated},
    {"ExpiredTokenException", kOutdated},
    {"QueueDoesNotExist", kNoQueue},
    {"NonExistentQueue", kNoQueue},
    {"QueueDeletedRecently", kNoQueue},
    {"InvalidAddress", kNoQueue},
    {"KmsAccessDenied", kNoKms},
    {"KmsDisabled", kNoKms},
    {"KmsInvalidKeyUsage", kNoKms},
    {"KmsInvalidState", kNoKms},
    {"KmsNotFound", kNoKms},
    {"KmsOptInRequired", kNoKms},
    {"UnsupportedOperation", kUnsupported},
    {"UnknownOperationException", kUnsupported},
    {"InvalidAction", kUnsupported},
    {"MissingAction", kUnsupported},
    {"InvalidMessageContents", kBadText},
    {"BatchRequestTooLong", kTooLarge},
    {"MessageTooLong", kTooLarge},
    {"RequestEntityTooLarge", kTooLarge},
};

const Meaning* find(std::string_view code) {
  const auto found = std::find_if(std::begin(kKnown), std::end(kKnown),
                                  [&](const Known& one) { return one.code == code; });
  return found == std::end(kKnown) ? nullptr : &found->meaning;
}

Meaning meaning_of_status(long status) {
  switch (status) {
    case 400: return {Kind::rejected, Errc::invalid_argument, kEvent};
    case 401:
    case 403: return {Kind::blocked, Errc::permission_denied, kKeys};
    case 408:
    case 421: return {Kind::retry, Errc::unavailable, kBroken};
    case 413: return kTooLarge;
    case 429: return kThrottled;
    default: break;
  }
  if (status < 500) return {Kind::blocked, Errc::unsupported, kEndpoint};
  // Not `retry`: SQS may have stored the messages before it failed.
  return {Kind::unknown, Errc::unavailable, kBroken};
}

}  // namespace

std::string short_code(std::string_view code) {
  constexpr std::string_view kQuery = "AWS.SimpleQueueService.";
  code.remove_prefix(std::min(code.rfind('#') + 1, code.size()));
  code = code.substr(0, code.find_first_of(":;"));
  if (code.starts_with(kQuery)) code.remove_prefix(kQuery.size());
  return std::string(trimmed(code));
}

Meaning find_meaning(std::string_view code, long status) {
  const Meaning* const known = find(code);
  const bool about_pace = known != nullptr && known->hint == kPace;
  if (known == nullptr || (status >= 500 && !about_pace)) return meaning_of_status(status);
  return *known;
}

Meaning meaning_of_entry(std::string_view code, bool sender_fault) {
  if (const Meaning* const known = find(code)) return *known;
  if (sender_fault) return {Kind::rejected, Errc::invalid_argument, kEvent};
  return {Kind::retry, Errc::unavailable, kBroken};
}

}  // namespace outbox::sink::sqs
