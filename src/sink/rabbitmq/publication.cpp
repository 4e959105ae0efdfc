#include "sink/rabbitmq/publication.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "event/headers.hpp"
#include "event/time_text.hpp"
#include "sink/rabbitmq/table.hpp"

namespace outbox::sink::rabbitmq {
namespace {

constexpr std::size_t kLongestShortString = 255;
constexpr std::uint8_t kPersistent = 2;
constexpr std::string_view kCorrelationHeader = "correlation_id";
constexpr std::int64_t kMicrosecondsPerSecond = 1'000'000;

Error refused(Errc code, std::string what, std::string hint) {
  return fail(code, "rabbitmq: " + std::move(what), std::move(hint)).value();
}

/// Whether RabbitMQ itself uses the header. It routes to the keys in CC and BCC, and closes the
/// channel when they are text. The others it writes itself, about dead letters, deliveries, streams
/// and moves between brokers, and consumers decide by them how often to try.
bool is_rabbitmqs(std::string_view name) {
  constexpr std::array<std::string_view, 11> kNames{
      "CC",
      "BCC",
      "x-death",
      "x-delivery-count",
      "x-acquired-count",
      "x-stream-offset",
      "x-received-from",
      "x-shovelled",
      "x-shovelled-by",
      "x-shovelled-timestamp",
      "x-routed-by",
  };
  constexpr std::array<std::string_view, 3> kPrefixes{"x-first-death-", "x-last-death-",
                                                      "x-opt-rabbitmq-"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::optional<Error> refusal_of_header(std::string_view name) {
  if (name.size() > kLongestShortString)
    return refused(Errc::invalid_argument,
                   fmt::format("the name of header {} is longer than 255 bytes", in_quotes(name)),
                   "AMQP has no longer names");
  if (is_rabbitmqs(name))
    return refused(Errc::invalid_argument,
                   fmt::format("header {} has a meaning of its own for RabbitMQ", name),
                   "give the header another name");
  return std::nullopt;
}

std::string_view find(std::span<const HeaderView> headers, std::string_view name) {
  const auto found = std::find_if(headers.begin(), headers.end(),
                                  [&](const HeaderView& header) { return header.name == name; });
  return found == headers.end() ? std::string_view() : found->value;
}

}  // namespace

std::optional<Error> find_refusal(const Message& message, std::string_view exchange,
                                  std::size_t max_message_size) {
  if (exchange.size() > kLongestShortString)
    return refused(
        Errc::invalid_argument,
        fmt::format("the name of exchange {} is longer than 255 bytes", in_quotes(exchange)),
        "see rabbitmq.exchange");
  if (message.topic.size() > kLongestShortString)
    return refused(Errc::invalid_argument,
                   fmt::format("routing key {} is longer than 255 bytes", in_quotes(message.topic)),
                   "see the subscription's topic template");
  if (message.body.size() > max_message_size)
    return refused(Errc::too_large,
                   fmt::format("the event has {} bytes, rabbitmq.max_message_size is {}",
                               message.body.size(), format_size(max_message_size)),
                   "raise it there and the max_message_size of the server, or make events smaller");
  for (const HeaderView& header : message.headers) {
    if (auto wrong = refusal_of_header(header.name)) return wrong;
  }
  return std::nullopt;
}

Error too_many_headers(const Message& message) {
  return refused(Errc::too_large,
                 fmt::format("the {} headers of the event do not fit into a frame of AMQP",
                             message.headers.size()),
                 "make them smaller, or raise frame_max of the server (128 KiB unless it was set)");
}

/// An event must not choose the default exchange, which reaches every queue, nor a name with line
/// breaks, which does not exist: RabbitMQ removes them from declared names only.
Result<std::string_view> Publication::exchange_for(const Message& message) {
  static const EventView no_event{};
  arena_.clear();
  const std::string_view name =
      exchange_.render(message.event != nullptr ? *message.event : no_event, arena_);
  if (!exchange_varies_ || (!name.empty() && !has_control(name))) return name;
  return fail(refused(
      Errc::invalid_argument,
      name.empty() ? "the event has an exchange without a name"
                   : fmt::format("the name of exchange {} has control characters", in_quotes(name)),
      "see rabbitmq.exchange, which depends on the event"));
}

/// The correlation id from the subscription's headers or else the event's, because not every format
/// passes headers on by name.
std::string_view Publication::find_correlation(const Message& message) {
  const std::string_view sent = find(message.headers, kCorrelationHeader);
  if (!sent.empty() || message.event == nullptr || event::no_headers(message.event->headers))
    return sent;
  return event::find_header(message.event->headers, kCorrelationHeader, arena_);
}

amqp_basic_properties_t& Publication::properties_for(const Message& message) {
  properties_ = {};
  // A text that is too long is left out, since the headers contain it, too.
  const auto set = [this](amqp_flags_t flag, amqp_bytes_t& place, std::string_view text) {
    if (text.empty() || text.size() > kLongestShortString) return;
    place = to_bytes(text);
    properties_._flags |= flag;
  };
  set(AMQP_BASIC_CONTENT_TYPE_FLAG, properties_.content_type, message.content_type);
  set(AMQP_BASIC_CORRELATION_ID_FLAG, properties_.correlation_id, find_correlation(message));
  set(AMQP_BASIC_APP_ID_FLAG, properties_.app_id, "outbox");
  properties_.delivery_mode = kPersistent;
  properties_._flags |= AMQP_BASIC_DELIVERY_MODE_FLAG;
  if (message.event != nullptr) {
    id_ = message.event->id.str();
    set(AMQP_BASIC_MESSAGE_ID_FLAG, properties_.message_id, id_);
    set(AMQP_BASIC_TYPE_FLAG, properties_.type, message.event->event_type);
    if (const auto happened = event::happened_us(*message.event); happened > 0) {
      properties_.timestamp = static_cast<std::uint64_t>(happened / kMicrosecondsPerSecond);
      properties_._flags |= AMQP_BASIC_TIMESTAMP_FLAG;
    }
  }
  add_headers(message);
  return properties_;
}

void Publication::add_headers(const Message& message) {
  headers_.clear();
  for (const HeaderView& header : message.headers) {
    headers_.push_back(make_entry(header.name, header.value));
    if (header.absent) headers_.back().value.kind = AMQP_FIELD_KIND_VOID;
  }
  if (message.key) headers_.push_back(make_entry(kKeyHeader, *message.key));
  properties_.headers = make_table(headers_);
  properties_._flags |= AMQP_BASIC_HEADERS_FLAG;
}

}  // namespace outbox::sink::rabbitmq
