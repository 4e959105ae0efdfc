#include "sink/http/request.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "event/headers.hpp"

namespace outbox::sink::http {
namespace {

/// An array is closed when its bodies have so many bytes.
constexpr std::size_t kArrayBytes = std::size_t{1} << 20U;

constexpr const char* kBadHeader =
    "leave such headers out when the event is enqueued, or send this one corrected: outbox parked edit";

Part part_of(const Message& message) {
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
  // libcurl would wait a second for permission to send a large body.
  lines.emplace_back("expect:");
}

Result<Request> Composer::single(const Message& message) {
  OUTBOX_TRY(std::string url, options_.target.url_for(*message.event, arena_));
  Request request{.url = std::move(url), .parts = {part_of(message)}};
  bool has_type = false;
  if (options_.body) {
    OUTBOX_TRY(request.parts.front().body, options_.body->render(*message.event, arena_));
    request.headers.push_back(
        header_line(event::kContentTypeHeader, options_.body->content_type()));
    has_type = true;
  }
  for (const HeaderView& header : message.headers) {
    if (const auto fault = fault_of(header, own_)) return refused(*fault);
    // Of the payload.
    if (options_.body && event::same_header(header.name, event::kContentTypeHeader)) continue;
    has_type = has_type || equal_ignoring_case(header.name, event::kContentTypeHeader);
    request.headers.push_back(header_line(header.name, header.value));
  }
  // Else libcurl adds the type of a form.
  if (!has_type) request.headers.emplace_back("content-type:");
  if (message.key) {
    const HeaderView key{.name = "outbox-key", .value = *message.key};
    if (const auto fault = fault_of(key, own_)) return refused(*fault);
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
    request.parts.push_back(part_of(message));
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
