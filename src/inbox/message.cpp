#include "inbox/message.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"
#include "event/arena.hpp"
#include "event/base64.hpp"
#include "event/content_type.hpp"
#include "event/headers.hpp"
#include "event/json_scan.hpp"
#include "event/task.hpp"
#include "event/text_rules.hpp"
#include "event/time_text.hpp"
#include "event/utf8.hpp"
#include "format/json_path.hpp"
#include "store/enqueue.hpp"

namespace outbox::inbox {
namespace {

using source::Spot;

using Names = std::span<const std::string_view>;

// Where the known formats have these, the first one that is there counts: our own, CloudEvents
// (its bindings for Kafka, HTTP and NATS, and AMQP), NATS, and Debezium's outbox event router.
constexpr std::array<std::string_view, 5> kIdHeaders{"outbox-id", "ce_id", "ce-id",
                                                     "cloudEvents:id", "Nats-Msg-Id"};
/// Debezium's. Others call other things so, and messages of one id count as one, so it counts only
/// if it is a UUID.
constexpr std::string_view kPlainIdHeader = "id";
constexpr std::array<std::string_view, 5> kTypeHeaders{"outbox-type", "ce_type", "ce-type",
                                                       "cloudEvents:type", "eventType"};
constexpr std::array<std::string_view, 6> kKeyHeaders{"outbox-key",      "ce_partitionkey",
                                                      "ce-partitionkey", "cloudEvents:partitionkey",
                                                      "ce_subject",      "ce-subject"};
constexpr std::array<std::string_view, 4> kSeqHeaders{"outbox-seq", "ce_sequence", "ce-sequence",
                                                      "cloudEvents:sequence"};
constexpr std::array<std::string_view, 4> kTimeHeaders{"outbox-time", "ce_time", "ce-time",
                                                       "cloudEvents:time"};
/// A member of our envelope; it counts only if it is a UUID, too.
constexpr std::string_view kEnvelopeId = "eventId";
constexpr std::string_view kStructured = "application/cloudevents+json";

constexpr std::string_view kUnreadableType = "unreadable";
/// What the stores hold. Of a larger payload they get the beginning, because a message that they
/// refuse would come again and again, before all others.
constexpr std::size_t kMostPayload = std::size_t{64} << 20U;
constexpr std::size_t kMostHeaders = std::size_t{64} << 10U;

/// A message while it is read.
class Reading {
 public:
  explicit Reading(const source::Received& received) : received_(received) {
    const std::string* const header = find_header(event::kContentTypeHeader);
    content_type_ = header != nullptr ? *header : received.content_type;
  }

  [[nodiscard]] const std::string& content_type() const { return content_type_; }
  [[nodiscard]] bool is_json() {
    if (!json_) json_ = event::is_json(received_.payload);
    return *json_;
  }
  [[nodiscard]] bool is_structured() const {
    return equal_ignoring_case(event::media_type(content_type_), kStructured);
  }

  [[nodiscard]] const std::string* find_header(std::string_view name) const {
    const auto found =
        std::find_if(received_.headers.rbegin(), received_.headers.rend(),
                     [&](const Header& header) { return equal_ignoring_case(header.first, name); });
    return found == received_.headers.rend() ? nullptr : &found->second;
  }
  [[nodiscard]] std::string first_header(Names names) const {
    for (const std::string_view name : names) {
      if (const std::string* const value = find_header(name); value != nullptr && !value->empty())
        return *value;
    }
    return {};
  }
  /// Empty if the payload is not JSON, or has no such value.
  [[nodiscard]] std::string find_json(std::string_view path) {
    if (!looks_like_json()) return {};
    return std::string(format::find_json(received_.payload, path, arena_));
  }
  [[nodiscard]] bool looks_like_json() const {
    const auto first = received_.payload.find_first_not_of(" \t\r\n");
    return first != std::string::npos &&
           (received_.payload[first] == '{' || received_.payload[first] == '[');
  }

  /// What the spot has; empty if it has nothing.
  [[nodiscard]] std::string at(const Spot& spot) {
    switch (spot.kind) {
      case Spot::Kind::header: {
        const std::string* const value = find_header(spot.name);
        return value != nullptr ? *value : std::string();
      }
      case Spot::Kind::json: return find_json(spot.name);
      case Spot::Kind::text: return spot.name;
      case Spot::Kind::place: return id_of_place();
      case Spot::Kind::known: break;
    }
    return {};
  }

  [[nodiscard]] std::string known_id() {
    std::string id = first_header(kIdHeaders);
    if (!id.empty()) return with_source(std::move(id), first_header(kSourceHeaders));
    if (!received_.id.empty()) return received_.id;
    if (const std::string* const plain = find_header(kPlainIdHeader);
        plain != nullptr && is_uuid(*plain))
      return *plain;
    if (is_structured()) {
      id = with_source(find_json("id"), find_json("source"));
    } else if (std::string own = find_json(kEnvelopeId); is_uuid(own)) {
      id = std::move(own);
    }
    return id.empty() ? id_of_place() : id;
  }
  /// A topic or a stream that was deleted and made again has the same places for other messages,
  /// which have other times.
  [[nodiscard]] std::string id_of_place() const {
    if (!received_.sent_at) return received_.place;
    return received_.place + "@" + std::to_string(event::to_us(*received_.sent_at));
  }
  [[nodiscard]] std::string known_type() {
    std::string type = first_header(kTypeHeaders);
    if (type.empty()) type = received_.type;
    if (type.empty()) type = find_json(is_structured() ? "type" : "eventType");
    return type.empty() ? received_.channel : type;
  }
  [[nodiscard]] std::string known_key() {
    if (!received_.key.empty()) return received_.key;
    std::string key = first_header(kKeyHeaders);
    if (key.empty()) key = find_json(is_structured() ? "subject" : "aggregateId");
    return key;
  }
  [[nodiscard]] std::string known_seq() {
    std::string seq = first_header(kSeqHeaders);
    return seq.empty() ? find_json("seq") : seq;
  }
  [[nodiscard]] std::optional<Timestamp> time() const {
    if (const auto us = event::read_time(first_header(kTimeHeaders))) return event::timestamp(*us);
    const auto sent = received_.sent_at;
    return sent && event::is_time(event::to_us(*sent)) ? sent : std::nullopt;
  }

 private:
  static constexpr std::array<std::string_view, 3> kSourceHeaders{"ce_source", "ce-source",
                                                                  "cloudEvents:source"};

  /// The id of a CloudEvent is unique within its source only, unless it is a UUID.
  [[nodiscard]] static std::string with_source(std::string id, const std::string& source) {
    if (id.empty() || source.empty() || is_uuid(id)) return id;
    return source + "#" + id;
  }
  [[nodiscard]] static bool is_uuid(std::string_view id) { return EventId::parse(id).has_value(); }

  const source::Received& received_;
  std::string content_type_;
  std::optional<bool> json_;
  event::Arena arena_;
};

/// A text that the inbox can hold: a longer one, or one with other bytes, is known by its hash.
std::string usable_id(std::string id) {
  if (event::check_required_name("id", id)) return id;
  return "sha256:" + sha256_digits(id);
}

/// A name that every handler can be given: CloudEvents over AMQP has colons in it.
std::string usable_name(std::string name) {
  constexpr std::string_view kAmqpPrefix = "cloudEvents:";
  if (name.starts_with(kAmqpPrefix)) name.replace(0, kAmqpPrefix.size(), "ce_");
  for (char& c : name) {
    if (!event::is_token(std::string_view(&c, 1))) c = '_';
  }
  return name;
}

std::string usable_value(std::string value) {
  if (event::check_header_value("headers", "x", value)) return value;
  return "base64:" + event::base64_text(value);
}

/// Whether the header would tell the worker what to do with the task, which only its own service
/// may.
bool directs_task(std::string_view name) { return event::has_header_prefix(name, "task-"); }

void set_header(std::vector<Header>& headers, std::string_view name, std::string value) {
  std::erase_if(headers,
                [&](const Header& header) { return event::same_header(header.first, name); });
  headers.emplace_back(std::string(name), std::move(value));
}

std::vector<Header> usable_headers(std::vector<Header> received) {
  std::vector<Header> headers;
  headers.reserve(received.size() + 2);
  for (auto& [name, value] : received) {
    if (directs_task(name) || event::is_reserved_header(name)) continue;
    std::string usable = usable_name(std::move(name));
    if (usable.empty()) continue;
    set_header(headers, usable, usable_value(std::move(value)));
  }
  return headers;
}

std::size_t count_bytes(const std::vector<Header>& headers) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : headers) bytes += name.size() + value.size();
  return bytes;
}

std::optional<std::int64_t> parse_seq(std::string_view text) {
  std::int64_t seq = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seq);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return seq;
}

/// Collects the first reason why a message cannot be understood.
class Faults {
 public:
  void add(const Status& status) {
    if (!status && reason_.empty()) reason_ = status.error().message;
  }
  void add(std::string reason) {
    if (reason_.empty()) reason_ = std::move(reason);
  }
  [[nodiscard]] bool any() const { return !reason_.empty(); }
  [[nodiscard]] std::string take() { return std::move(reason_); }

 private:
  std::string reason_;
};

std::string missing(std::string_view what, const Spot& spot) {
  const bool header = spot.kind == Spot::Kind::header;
  return std::string("it has no ")
      .append(what)
      .append(header ? ": no header " : ": nothing at ")
      .append(spot.name);
}

}  // namespace

Result<MessageReader> MessageReader::make(const ConsumerSpec& spec) {
  MessageReader reader;
  reader.aggregate_type_ = event::make_aggregate_type(spec.queue);
  OUTBOX_TRY(reader.id_, Spot::parse("id", spec.id));
  OUTBOX_TRY(reader.type_, Spot::parse("type", spec.type));
  OUTBOX_TRY(reader.key_, Spot::parse("key", spec.key));
  OUTBOX_TRY(reader.seq_, Spot::parse("seq", spec.seq));
  return reader;
}

MessageReader::Read MessageReader::read(source::Received received) const {
  Reading reading(received);
  Faults faults;
  const auto known = [](const Spot& spot) { return spot.kind == Spot::Kind::known; };
  const auto get = [&](std::string_view what, const Spot& spot, std::string found) {
    std::string value = known(spot) ? std::move(found) : reading.at(spot);
    if (value.empty() && !known(spot)) faults.add(missing(what, spot));
    return value;
  };
  Read read;
  Event& task = read.message.task;
  std::string id = get("id", id_, known(id_) ? reading.known_id() : std::string());
  if (id.empty()) id = reading.id_of_place();
  read.message.id = usable_id(std::move(id));
  read.message.place = received.place;
  task.aggregate_type = aggregate_type_;
  task.event_type = get("type", type_, known(type_) ? reading.known_type() : std::string());
  task.aggregate_id = get("key", key_, known(key_) ? reading.known_key() : std::string());
  faults.add(event::check_required_name("type", task.event_type));
  faults.add(event::check_name("key", task.aggregate_id));
  read.message.seq = parse_seq(get("seq", seq_, known(seq_) ? reading.known_seq() : std::string()));
  task.content_type = reading.content_type();
  if (task.content_type.empty() && reading.looks_like_json() && reading.is_json())
    task.content_type = "application/json";
  faults.add(event::check_content_type("content type", task.content_type));
  if (event::is_json_type(task.content_type) && !reading.is_json())
    faults.add("its content type is " + task.content_type + ", and its payload is not JSON");
  if (received.payload.size() > kMostPayload)
    faults.add("its payload has " + std::to_string(received.payload.size()) +
               " bytes, of which the first 64 MiB are kept");
  task.occurred_at = reading.time();
  task.id = EventId::generate();
  task.lock_key = false;  // The source has the messages of a key in order already.

  task.headers = usable_headers(std::move(received.headers));
  if (count_bytes(task.headers) > kMostHeaders) {
    faults.add("its headers have more than 64 KiB");
    task.headers.clear();
  }
  if (!received.correlation_id.empty() &&
      std::none_of(task.headers.begin(), task.headers.end(), [](const Header& header) {
        return event::same_header(header.first, "correlation_id");
      }))
    task.headers.emplace_back("correlation_id", usable_value(std::move(received.correlation_id)));
  set_header(task.headers, kMessageIdHeader, read.message.id);
  if (received.payload.size() > kMostPayload) received.payload.resize(kMostPayload);
  task.payload = std::move(received.payload);
  if (!faults.any()) return read;

  read.unreadable = faults.take();
  task.headers.emplace_back(event::kUnreadableHeader, usable_value(read.unreadable));
  task.content_type.clear();
  task.aggregate_id.clear();
  if (!event::check_required_name("type", task.event_type)) task.event_type = kUnreadableType;
  return read;
}

}  // namespace outbox::inbox
