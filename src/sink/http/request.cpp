#include "sink/http/request.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "event/content_type.hpp"
#include "event/headers.hpp"
#include "event/text_rules.hpp"
#include "sink/http/signature.hpp"

namespace outbox::sink::http {
namespace {

/// Headers that say how the message is framed or to whom it goes, that concern one connection only
/// (RFC 9110, 7.6.1), or that are signed.
constexpr std::array<std::string_view, 16> kOurs{"connection",
                                                 "content-length",
                                                 "expect",
                                                 "host",
                                                 "http2-settings",
                                                 "keep-alive",
                                                 "proxy-authenticate",
                                                 "proxy-authorization",
                                                 "proxy-connection",
                                                 "te",
                                                 "trailer",
                                                 "transfer-encoding",
                                                 "upgrade",
                                                 "webhook-id",
                                                 "webhook-timestamp",
                                                 "webhook-signature"};

bool is_ours(std::string_view name, const OwnHeaders& own) {
  const auto same = [&](std::string_view other) { return event::same_header(name, other); };
  return std::any_of(kOurs.begin(), kOurs.end(), same) ||
         (own.authorization && same("authorization")) ||
         (own.idempotency_key && same("idempotency-key"));
}

bool has_control_character(std::string_view value) {
  return std::any_of(value.begin(), value.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20U && c != '\t') || byte == 0x7fU;
  });
}

}  // namespace

std::optional<std::string> find_fault(const HeaderView& header, const OwnHeaders& own) {
  if (!event::is_token(header.name)) return in_quotes(header.name) + " is not a name of a header";
  if (is_ours(header.name, own))
    return "the header " + in_quotes(header.name) + " is set by the sink itself";
  if (has_control_character(header.value))
    return "the value of the header " + in_quotes(header.name) +
           " has a line break or another control character";
  return std::nullopt;
}

std::string header_line(std::string_view name, std::string_view value) {
  std::string line(name);
  value = trimmed(value);
  return value.empty() ? line + ";" : line.append(": ").append(value);
}

std::string request_id(std::span<const BatchedEvent> parts) {
  if (parts.size() == 1) return parts.front().id;
  std::string ids;
  for (const BatchedEvent& part : parts) ids.append(part.id).push_back(' ');
  return "batch-" + make_digest(ids);
}

std::string join_array(std::span<const BatchedEvent> parts) {
  std::size_t size = 2;
  for (const BatchedEvent& part : parts) size += part.body.size() + 1;
  std::string array;
  array.reserve(size);
  array += '[';
  for (const BatchedEvent& part : parts) {
    if (array.size() > 1) array += ',';
    array += part.body;
  }
  return array += ']';
}

std::string_view array_type(std::string_view content_type) {
  // The type is from CloudEvents, HTTP protocol binding, 3.3.
  if (equal_ignoring_case(event::media_type(content_type), "application/cloudevents+json"))
    return "application/cloudevents-batch+json; charset=utf-8";
  return event::is_json_type(content_type) ? "application/json" : "";
}

namespace {

/// An array takes no more bodies once it has this many bytes.
constexpr std::size_t kArrayBytes = std::size_t{1} << 20U;

constexpr const char* kBadHeader =
    "leave such headers out when the event is enqueued, or send this one corrected: outbox parked edit";

BatchedEvent make_part(const Message& message) {
  return {.token = message.token, .id = message.event->id.str(), .body = std::string(message.body)};
}

tl::unexpected<Error> refused(const std::string& why) {
  return fail(Errc::invalid_argument, "http: the event cannot be sent: " + why, kBadHeader);
}

}  // namespace

Composer::Composer(const HttpOptions& options)
    : options_(options),
      own_{.authorization = !options.plain.authorization.empty() || !options.plain.username.empty(),
           .idempotency_key = options.plain.idempotency_key} {}

Result<Request> Composer::compose(std::span<const Message> messages) {
  arena_.clear();
  return options_.plain.batch == 1 ? single(messages.front()) : array(messages);
}

void Composer::add_own(std::vector<std::string>& lines) const {
  if (!options_.plain.authorization.empty())
    lines.push_back(header_line("authorization", options_.plain.authorization));
  // Without this libcurl would wait a second for permission to send a large body.
  lines.emplace_back("expect:");
}

Result<Request> Composer::single(const Message& message) {
  OUTBOX_TRY(std::string url, options_.target.url_for(*message.event, arena_));
  Request request{.url = std::move(url), .parts = {make_part(message)}};
  bool has_type = false;
  if (options_.body) {
    OUTBOX_TRY(request.parts.front().body, options_.body->render(*message.event, arena_));
    request.headers.push_back(
        header_line(event::kContentTypeHeader, options_.body->content_type()));
    has_type = true;
  }
  for (const HeaderView& header : message.headers) {
    if (const auto fault = find_fault(header, own_)) return refused(*fault);
    // This header describes the payload, which is not sent.
    if (options_.body && event::same_header(header.name, event::kContentTypeHeader)) continue;
    has_type = has_type || equal_ignoring_case(header.name, event::kContentTypeHeader);
    request.headers.push_back(header_line(header.name, header.value));
  }
  // Without this libcurl adds the content type of a form.
  if (!has_type) request.headers.emplace_back("content-type:");
  if (message.key) {
    const HeaderView key{.name = "outbox-key", .value = *message.key};
    if (const auto fault = find_fault(key, own_)) return refused(*fault);
    request.headers.push_back(header_line(key.name, key.value));
  }
  add_own(request.headers);
  return request;
}

Result<Request> Composer::array(std::span<const Message> messages) {
  const std::string_view type = array_type(messages.front().content_type);
  if (type.empty()) return refused("with http.batch its message must be JSON");
  OUTBOX_TRY(std::string url, options_.target.url_for(*messages.front().event, arena_));
  Request request{.url = std::move(url), .is_array = true};
  std::size_t bytes = 0;
  for (const Message& message : messages) {
    if (!request.parts.empty()) {
      const bool full = request.parts.size() == options_.plain.batch || bytes >= kArrayBytes;
      if (full || array_type(message.content_type) != type) break;
      const auto other = options_.target.url_for(*message.event, arena_);
      if (!other || *other != request.url) break;
    }
    request.parts.push_back(make_part(message));
    bytes += message.body.size();
  }
  request.headers.push_back(header_line("content-type", type));
  add_own(request.headers);
  return request;
}

std::vector<std::string> Composer::stamp(const Request& request, std::string_view body,
                                         std::int64_t timestamp) const {
  const std::string id = request_id(request.parts);
  std::vector<std::string> lines{header_line("webhook-id", id),
                                 header_line("webhook-timestamp", std::to_string(timestamp))};
  if (options_.signer.signs())
    lines.push_back(header_line("webhook-signature", options_.signer.sign(id, timestamp, body)));
  if (own_.idempotency_key) lines.push_back(header_line("idempotency-key", id));
  return lines;
}

std::pair<Request, Request> halves(Request whole) {
  Request second{.url = whole.url, .is_array = whole.is_array, .headers = whole.headers};
  const auto middle = whole.parts.begin() + static_cast<std::ptrdiff_t>(whole.parts.size() / 2);
  second.parts.assign(std::make_move_iterator(middle), std::make_move_iterator(whole.parts.end()));
  whole.parts.erase(middle, whole.parts.end());
  return {std::move(whole), std::move(second)};
}

}  // namespace outbox::sink::http
