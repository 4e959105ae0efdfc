#include "sink/sqs/composer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "event/base64.hpp"
#include "event/json_write.hpp"
#include "sink/sqs/attributes.hpp"
#include "sink/sqs/names.hpp"

namespace outbox::sink::sqs {
namespace {

constexpr std::string_view kTraceparent = "traceparent";
/// In place of an empty body, which SQS does not take.
constexpr std::string_view kNothing = "-";

struct Body {
  std::string text;
  std::string_view encoding;  ///< Of outbox-encoding; empty: it is as it is.
};

std::string in_base64(std::string_view bytes) {
  std::string base64(event::base64_length(bytes.size()), '\0');
  event::write_base64(bytes, base64.data());
  return base64;
}

Result<Body> body_of(std::string_view bytes, const std::string& encoding) {
  if (encoding != "base64" && is_sendable(bytes)) return Body{std::string(bytes), {}};
  if (encoding == "text") {
    return fail(
        Errc::invalid_argument,
        bytes.empty()
            ? "sqs: the body is empty, which SQS does not take"
            : "sqs: the body is not UTF-8, or has control characters that SQS does not take",
        "set sqs.encoding = \"auto\" or \"base64\", which consumers must then decode; or "
        "filter such events out");
  }
  if (bytes.empty()) return Body{std::string(kNothing), "empty"};
  return Body{in_base64(bytes), "base64"};
}

class Members {
 public:
  void text(std::string_view name, std::string_view value) {
    begin(name);
    event::append_json_string(json_, value);
  }
  void number(std::string_view name, std::size_t value) {
    begin(name);
    json_ += std::to_string(value);
  }
  void attributes(std::string_view name, const std::vector<Attribute>& all) {
    if (all.empty()) return;
    begin(name);
    json_ += '{';
    for (const Attribute& one : all) {
      if (&one != &all.front()) json_ += ',';
      event::append_json_string(json_, one.name);
      json_ += R"(:{"DataType":"String","StringValue":)";
      event::append_json_string(json_, one.value);
      json_ += '}';
    }
    json_ += '}';
  }
  [[nodiscard]] std::string take() { return std::move(json_); }

 private:
  void begin(std::string_view name) {
    if (!json_.empty()) json_ += ',';
    event::append_json_string(json_, name);
    json_ += ':';
  }

  std::string json_;
};

/// They do not count as bytes of the message.
std::vector<Attribute> system_attributes_of(const Message& message) {
  const auto found = std::find_if(
      message.headers.begin(), message.headers.end(),
      [](const HeaderView& header) { return equal_ignoring_case(header.name, kTraceparent); });
  if (found == message.headers.end()) return {};
  const auto header = trace_header(found->value);
  if (!header) return {};
  return {{.name = "AWSTraceHeader", .value = *header}};
}

}  // namespace

Result<std::string> Composer::queue_for(const Message& message) {
  if (!options_.queue) return options_.plain.url;
  arena_.clear();
  std::string name(options_.queue->render(*message.event, arena_));
  if (const std::string_view wrong = wrong_queue_name(name); !wrong.empty()) {
    return fail(Errc::invalid_argument,
                fmt::format("sqs: the queue {} of this event {}", in_quotes(name), wrong),
                "choose other fields for sqs.queue; |kebab and |default: help");
  }
  return name;
}

Result<Composed> Composer::compose(const Message& message) {
  const SqsSettings& plain = options_.plain;
  OUTBOX_TRY(std::string queue, queue_for(message));
  OUTBOX_TRY(const Body body, body_of(message.body, plain.encoding));
  OUTBOX_TRY(const auto attributes, attributes_of(message, body.encoding, plain.attributes));
  std::size_t bytes = body.text.size();
  for (const Attribute& one : attributes) bytes += one.bytes();
  if (bytes > plain.max_batch_bytes) {
    return fail(
        Errc::too_large,
        fmt::format("sqs: the event has {} bytes with its attributes, more than {}", bytes,
                    format_size(plain.max_batch_bytes)),
        "raise sqs.max_batch_bytes if the queue takes larger messages (MaximumMessageSize, up to 1 MiB), or store large "
        "content elsewhere and send a reference");
  }
  Members members;
  members.text("MessageBody", body.text);
  members.attributes("MessageAttributes", attributes);
  members.attributes("MessageSystemAttributes", system_attributes_of(message));
  if (is_fifo(queue)) {
    members.text("MessageGroupId", group_id(message.key, message.event->id));
    members.text("MessageDeduplicationId", deduplication_id(*message.event, options_.subscription));
  } else if (plain.delay_seconds > 0) {
    members.number("DelaySeconds", plain.delay_seconds);
  }
  return Composed{.queue = std::move(queue),
                  .entry = {.token = message.token, .members = members.take(), .bytes = bytes}};
}

}  // namespace outbox::sink::sqs
