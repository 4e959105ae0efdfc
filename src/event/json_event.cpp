#include "event/json_event.hpp"

#include <array>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/field_error.hpp"
#include "base/text.hpp"
#include "event/base64.hpp"
#include "event/content_type.hpp"
#include "event/json_scan.hpp"
#include "event/json_write.hpp"
#include "event/text_rules.hpp"
#include "event/time_text.hpp"

namespace outbox::event {
namespace {

bool is_string(std::string_view value) { return value.front() == '"'; }

/// The event of one line, member by member.
class Reader {
 public:
  Status take(const std::string& name, std::string_view value) {
    std::array<std::string_view, kMembers.size()> known;
    for (std::size_t i = 0; i < kMembers.size(); ++i) {
      known[i] = kMembers[i].name;
      if (known[i] != name) continue;
      // A second value is refused, because parsers disagree about which one counts.
      if (std::exchange(seen_[i], true)) return bad_field(name, "is given twice");
      if (kMembers[i].may_be_null && value == "null") return {};
      return (this->*kMembers[i].read)(name, value);
    }
    return bad_field(in_quotes(name), "unknown member of an event", did_you_mean(name, known));
  }

  Result<Event> finish() {
    if (!given("aggregate_type")) return bad_field("aggregate_type", "is missing");
    if (!given("event_type")) return bad_field("event_type", "is missing");
    const bool bytes = given("payload_base64");
    if (!given("payload") && !bytes) return bad_field("payload", "is missing");
    if (given("payload") && bytes)
      return bad_field("payload", "is given twice: as payload and as payload_base64");
    if (!bytes) {
      const bool text = is_string(payload_) && !is_json_type(event_.content_type);
      event_.payload = text ? json_text(payload_) : std::string(payload_);
    }
    return std::move(event_);
  }

 private:
  struct Member {
    std::string_view name;
    bool may_be_null;  ///< Whether null means absent, as many programs write it.
    Status (Reader::*read)(const std::string& name, std::string_view value);
  };

  template <std::string Event::*member>
  Status text(const std::string& name, std::string_view value) {
    if (!is_string(value)) return bad_field(name, "is not a string", "put it in quotes");
    event_.*member = json_text(value);
    return {};
  }

  Status payload(const std::string&, std::string_view value) {
    payload_ = value;
    return {};
  }

  Status payload_base64(const std::string& name, std::string_view value) {
    auto bytes = is_string(value) ? read_base64(json_text(value)) : std::nullopt;
    if (!bytes) return bad_field(name, "is not base64", "with padding, without line breaks");
    event_.payload = std::move(*bytes);
    return {};
  }

  Status headers(const std::string&, std::string_view value) {
    OUTBOX_TRY(event_.headers, headers_from_json(value));
    return {};
  }

  Status id(const std::string& name, std::string_view value) {
    if (!is_string(value)) return bad_field(name, "is not a string");
    OUTBOX_TRY(event_.id, EventId::parse(json_text(value)));
    return {};
  }

  Status lock_key(const std::string& name, std::string_view value) {
    if (value != "true" && value != "false") return bad_field(name, "is neither true nor false");
    event_.lock_key = value == "true";
    return {};
  }

  Status occurred_at(const std::string& name, std::string_view value) {
    const auto us = is_string(value) ? read_time(json_text(value)) : std::nullopt;
    if (!us)
      return bad_field(name, "is not a time", "RFC 3339, for example 2026-01-05T08:09:12.5Z");
    event_.occurred_at.emplace(std::chrono::microseconds(*us));
    return {};
  }

  static constexpr std::array<Member, 10> kMembers{{
      {"aggregate_type", false, &Reader::text<&Event::aggregate_type>},
      {"aggregate_id", true, &Reader::text<&Event::aggregate_id>},
      {"event_type", false, &Reader::text<&Event::event_type>},
      {"payload", false, &Reader::payload},
      {"payload_base64", false, &Reader::payload_base64},
      {"headers", true, &Reader::headers},
      {"id", true, &Reader::id},
      {"content_type", true, &Reader::text<&Event::content_type>},
      {"lock_key", true, &Reader::lock_key},
      {"occurred_at", true, &Reader::occurred_at},
  }};

  [[nodiscard]] bool given(std::string_view name) const {
    for (std::size_t i = 0; i < kMembers.size(); ++i) {
      if (kMembers[i].name == name) return seen_[i];
    }
    return false;
  }

  Event event_;
  std::string_view payload_;  ///< As in the line; its meaning depends on the content type.
  std::array<bool, kMembers.size()> seen_{};
};

/// Calls `take` for each member until one is refused. A syntax error takes precedence: half a line
/// must not be reported as a missing field.
template <class Take>
Status read_object(std::string_view json, const std::string& not_an_object, Take&& take) {
  Status status;
  const auto fault = for_each_member(json, [&](JsonString name, std::string_view value) {
    if (status) status = take(decode_json(name), value);
  });
  if (!fault) return status;
  return fail(Errc::invalid_argument,
              not_an_object + ": " + fault->what + " at byte " + std::to_string(fault->offset + 1));
}

}  // namespace

Result<Event> parse_event(std::string_view line) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  if (line.substr(0, byte_order_mark.size()) == byte_order_mark)
    line.remove_prefix(byte_order_mark.size());
  Reader reader;
  OUTBOX_TRY(read_object(
      line, "is not a JSON object",
      [&](const std::string& name, std::string_view value) { return reader.take(name, value); }));
  return reader.finish();
}

std::string headers_to_json(const std::vector<Header>& headers) {
  std::string json = "{";
  for (const auto& [name, value] : headers) {
    if (json.size() > 1) json += ", ";
    append_json_string(json, name);
    json += ": ";
    append_json_string(json, value);
  }
  json += '}';
  return json;
}

Result<std::vector<Header>> headers_from_json(std::string_view json) {
  std::vector<Header> headers;
  OUTBOX_TRY(read_object(json, "headers: is not a JSON object",
                         [&](std::string name, std::string_view value) -> Status {
                           if (!is_string(value))
                             return bad_field(
                                 "headers", "the value of " + in_quotes(name) + " is not a string");
                           headers.emplace_back(std::move(name), json_text(value));
                           return {};
                         }));
  return headers;
}

}  // namespace outbox::event
