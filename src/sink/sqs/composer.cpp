#include "sink/sqs/composer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "event/base64.hpp"
#include "event/headers.hpp"
#include "event/json_write.hpp"
#include "event/utf8.hpp"
#include "sink/sqs/names.hpp"

namespace outbox::sink::sqs {
namespace {

/// What consumers need first; names from the settings come after the first two.
constexpr std::array<std::string_view, 2> kAlways{event::kIdHeader, kEncodingAttribute};
constexpr std::array<std::string_view, 6> kThen{
    event::kContentTypeHeader, kKeyAttribute, "outbox-seq", "outbox-type",
    "outbox-aggregate-type",   "outbox-time",
};
constexpr std::string_view kCloudEvents = "ce_";

template <class Names>
std::size_t place_in(const Names& names, std::string_view name) {
  const auto found = std::find_if(names.begin(), names.end(), [&](std::string_view one) {
    return equal_ignoring_case(one, name);
  });
  return static_cast<std::size_t>(found - names.begin());
}

/// The rank of an attribute; smaller ranks come first.
std::size_t find_rank(std::string_view name, std::span<const std::string> first) {
  if (const std::size_t place = place_in(kAlways, name); place < kAlways.size()) return place;
  std::size_t before = kAlways.size();
  if (const std::size_t place = place_in(first, name); place < first.size()) return before + place;
  before += first.size();
  // Consumers read CloudEvents by their attributes.
  if (name.starts_with(kCloudEvents)) return before;
  return before + 1 + place_in(kThen, name);
}

bool has(std::span<const HeaderView> headers, std::string_view name) {
  return std::any_of(headers.begin(), headers.end(), [&](const HeaderView& header) {
    return equal_ignoring_case(header.name, name);
  });
}

std::vector<HeaderView> list_headers(const Message& message, std::string_view encoding) {
  std::vector<HeaderView> all(message.headers.begin(), message.headers.end());
  if (message.key && !has(all, kKeyAttribute))
    all.push_back({.name = kKeyAttribute, .value = *message.key});
  if (!encoding.empty()) all.push_back({.name = kEncodingAttribute, .value = encoding});
  return all;
}

bool can_be_attribute(const HeaderView& header) {
  return wrong_attribute_name(header.name).empty() && is_sendable(header.value) &&
         !equal_ignoring_case(header.name, kRestAttribute);
}

/// The headers as JSON in ASCII, so that SQS takes any text.
std::string as_json(std::span<const HeaderView> headers) {
  auto object = nlohmann::ordered_json::object();
  for (const HeaderView& header : headers)
    object[std::string(header.name)] = std::string(header.value);
  return write_json(object, {.ascii = true});
}

Status check_text(const HeaderView& header) {
  if (event::is_utf8(header.name) && event::is_utf8(header.value)) return {};
  return fail(Errc::invalid_argument,
              "sqs: the header " + in_quotes(header.name) + " is not UTF-8, which SQS cannot send",
              "encode it where the event is written");
}

}  // namespace

std::size_t Attribute::bytes() const {
  return name.size() + std::string_view("String").size() + value.size();
}

Result<std::vector<Attribute>> make_attributes(const Message& message, std::string_view encoding,
                                               std::span<const std::string> first) {
  std::vector<HeaderView> headers = list_headers(message, encoding);
  for (const HeaderView& header : headers) {
    OUTBOX_TRY(check_text(header));
  }
  std::stable_sort(headers.begin(), headers.end(), [&](const HeaderView& a, const HeaderView& b) {
    return find_rank(a.name, first) < find_rank(b.name, first);
  });
  const auto illegal = std::stable_partition(headers.begin(), headers.end(), can_be_attribute);
  const auto legal = static_cast<std::size_t>(illegal - headers.begin());
  const bool all_fit = legal == headers.size() && legal <= kMostAttributes;
  const std::size_t own = all_fit ? legal : std::min(legal, kMostAttributes - 1);
  std::vector<Attribute> attributes;
  for (const HeaderView& header : std::span(headers).first(own))
    attributes.push_back({.name = std::string(header.name), .value = std::string(header.value)});
  if (!all_fit) {
    attributes.push_back(
        {.name = std::string(kRestAttribute), .value = as_json(std::span(headers).subspan(own))});
  }
  return attributes;
}

namespace {

constexpr std::string_view kTraceparent = "traceparent";
/// Replaces an empty body, which SQS does not take.
constexpr std::string_view kNothing = "-";

struct Body {
  std::string text;
  std::string_view encoding;  ///< The value of outbox-encoding; empty if the body is unchanged.
};

Result<Body> make_body(std::string_view bytes, const std::string& encoding) {
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
  return Body{event::base64_text(bytes), "base64"};
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

/// The system attributes, which do not count as bytes of the message.
std::vector<Attribute> make_system_attributes(const Message& message) {
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
  OUTBOX_TRY(const Body body, make_body(message.body, plain.encoding));
  OUTBOX_TRY(const auto attributes, make_attributes(message, body.encoding, plain.attributes));
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
  members.attributes("MessageSystemAttributes", make_system_attributes(message));
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
