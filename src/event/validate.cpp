// Checks events before anything is written.
#include <algorithm>
#include <cstddef>
#include <outbox/event.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "event/content_type.hpp"
#include "event/headers.hpp"
#include "event/json_scan.hpp"
#include "event/text_rules.hpp"
#include "event/time_text.hpp"

namespace outbox {
namespace {

std::string sizes(std::size_t is, std::size_t most) {
  return "is " + std::to_string(is) + " bytes, at most " + std::to_string(most) + " are allowed";
}

/// Sorts, because an event may have thousands of names.
bool has_duplicate(const std::vector<Header>& headers, std::string_view& duplicate) {
  std::vector<std::pair<std::string, std::string_view>> names;
  names.reserve(headers.size());
  for (const auto& header : headers) {
    names.emplace_back(to_lower(header.first), header.first);
  }
  std::sort(names.begin(), names.end());
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  const auto found = std::adjacent_find(names.begin(), names.end(), same);
  if (found == names.end()) return false;
  duplicate = found->second;
  return true;
}

Status check_headers(const Event& event, const EventLimits& limits) {
  std::size_t bytes = 0;
  const bool has_type = !event.content_type.empty();
  for (const auto& [name, value] : event.headers) {
    OUTBOX_TRY(event::check_header_name("headers", name));
    OUTBOX_TRY(event::check_header_value("headers", name, value));
    if (has_type && event::same_header(name, event::kContentTypeHeader)) {
      return fail(Errc::invalid_argument, "headers: content-type is set twice",
                  "set the event's content_type instead of a header");
    }
    bytes += name.size() + value.size();
  }
  if (bytes > limits.headers_bytes) {
    return fail(Errc::too_large,
                "headers: all names and values together " + sizes(bytes, limits.headers_bytes));
  }
  std::string_view duplicate;
  if (event.headers.size() < 2 || !has_duplicate(event.headers, duplicate)) return {};
  return fail(Errc::invalid_argument, "headers: " + in_quotes(duplicate) + " is given twice",
              "upper and lower case are the same in header names");
}

Status check_payload(const Event& event, const EventLimits& limits) {
  if (event.payload.size() > limits.payload_bytes) {
    return fail(Errc::too_large, "payload: " + sizes(event.payload.size(), limits.payload_bytes),
                "store large content elsewhere and send a reference to it");
  }
  if (!event::is_json_type(event.content_type)) return {};
  const auto fault = event::json_fault(event.payload);
  if (!fault) return {};
  const std::string hint =
      "the content type is " + event.content_type + "; set another one for other payloads";
  if (event.payload.empty())
    return fail(Errc::invalid_argument, "payload: is not JSON: it is empty", hint);
  return fail(Errc::invalid_argument,
              "payload: is not JSON: " + std::string(fault->what) + " at byte " +
                  std::to_string(fault->offset + 1),
              hint);
}

}  // namespace

Status validate(const Event& event, const EventLimits& limits) {
  OUTBOX_TRY(event::check_required_name("aggregate_type", event.aggregate_type,
                                        "what kind of thing changed, such as order"));
  OUTBOX_TRY(event::check_name("aggregate_id", event.aggregate_id));
  OUTBOX_TRY(event::check_required_name("event_type", event.event_type,
                                        "what happened, such as OrderPlaced"));
  OUTBOX_TRY(event::check_content_type("content_type", event.content_type));
  OUTBOX_TRY(check_headers(event, limits));
  if (event.occurred_at && !event::is_time(*event::occurred_us(event)))
    return fail(Errc::invalid_argument, "occurred_at: lies outside the years 1 to 9999");
  return check_payload(event, limits);
}

}  // namespace outbox
