// outbox/event.hpp: an event before it is written (Event) and as it was read back (EventView).
//
//   outbox::Event event{.aggregate_type = "order",
//                       .aggregate_id = "42",
//                       .event_type = "OrderPlaced",
//                       .payload = R"({"total": 12.5})"};
//
// The ordering key of an event is (aggregate_type, aggregate_id). An event with an empty
// aggregate_id has no key and no order.
//
// Threads: values; Const methods from any thread.
// Lifetime: Event owns its strings. EventView borrows: its lifetime is documented where it is used.
// Errors: validate() names the field that is wrong.
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/time.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace outbox {

/// A UUID. generate() makes version 7 (RFC 9562): the first 48 bits are the time in milliseconds.
struct EventId {
  std::array<std::uint8_t, 16> bytes{};

  /// A new UUIDv7, unique across threads and processes. May be called from any thread.
  [[nodiscard]] static EventId generate();
  /// Accepts the 36-character form, upper or lower case.
  [[nodiscard]] static Result<EventId> parse(std::string_view text);
  /// The 36-character lower-case form.
  [[nodiscard]] std::string str() const;

  auto operator<=>(const EventId&) const = default;  // NOLINT(modernize-use-nullptr): its own
};

/// Name and value of a header, as text. Headers are sent to every sink with the message.
using Header = std::pair<std::string, std::string>;

/// An event to enqueue.
struct Event {
  /// What kind of thing changed ("order"). Required, not blank, at most 255 bytes, no control
  /// characters.
  std::string aggregate_type;
  /// Which thing changed ("42"). An event with an empty id has no key and no order. At most 255
  /// bytes, no control characters.
  std::string aggregate_id;
  /// What happened ("OrderPlaced"). Required, not blank, at most 255 bytes, no control characters.
  std::string event_type;
  /// The body, delivered byte for byte. At most EventLimits::payload_bytes.
  std::string payload;
  /// Names are RFC 9110 tokens, unique ignoring case. They are passed on unchanged, `traceparent`
  /// and `tracestate` included, which are never generated. Names that begin with `outbox-` are
  /// reserved.
  std::vector<Header> headers{};
  /// The caller's own id. No constraint makes ids unique: two events with one id are both
  /// delivered. Default: a new UUIDv7.
  std::optional<EventId> id{};
  /// The media type of the payload. When it is JSON ("application/json" or "...+json") the payload
  /// must parse as JSON. Empty: unknown. Default: application/json.
  std::string content_type{"application/json"};
  /// Take an advisory lock on the key, for writers that do not lock the aggregate themselves
  /// (PostgreSQL only). Default: the setting `outbox.lock_key` of the session, which is off by
  /// default.
  std::optional<bool> lock_key{};
  /// When it happened, for events that are imported later; in the years 1 to 9999, from a clock's
  /// now() with std::chrono::floor. It changes neither order nor delivery. Default: the moment it
  /// is written (created_at).
  std::optional<Timestamp> occurred_at{};
};

/// Limits of an event. The SQL functions and the command line check the same ones.
struct EventLimits {
  /// Unit: bytes. Default: 1 MiB.
  std::size_t payload_bytes{std::size_t{1} << 20U};
  /// All header names and values together. Unit: bytes. Default: 64 KiB.
  std::size_t headers_bytes{std::size_t{64} << 10U};
};

/// Checks an event. The error names the field ("aggregate_type: is blank").
[[nodiscard]] Status validate(const Event& event, const EventLimits& limits = {});

/// An event as the relay read it from the log.
struct EventView {
  std::int64_t seq{0};  ///< Position in the log; increases within each key.
  EventId id{};
  std::string_view aggregate_type;
  std::string_view aggregate_id;
  std::string_view event_type;
  std::string_view payload;
  std::string_view content_type;  ///< Empty: unknown.
  std::string_view headers;       ///< A JSON object of strings.
  Timestamp created_at{};         ///< When it was written.
  /// When it happened, if the writer gave it.
  std::optional<Timestamp> occurred_at{};
};

}  // namespace outbox
