// What Debezium's outbox event router sends (io.debezium.transforms.outbox.EventRouter), so that
// its consumers need no change. Compared with messages captured from Debezium 3.4.1; the options
// have the names and defaults of the router and of the converter.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "event/attribute_text.hpp"
#include "event/base64.hpp"
#include "event/headers.hpp"
#include "event/json_scan.hpp"
#include "event/text_rules.hpp"
#include "event/utf8.hpp"
#include "format/connect_json.hpp"
#include "format/format.hpp"

namespace outbox::format {
namespace {

constexpr std::array<std::string_view, 5> kDebeziumOptions{"converter", "expand_json", "placement",
                                                           "keep_nulls", "keep_empty_arrays"};
constexpr std::array<std::string_view, 2> kConverters{"string", "json"};
constexpr std::array<std::string_view, 2> kBooleans{"true", "false"};

/// An entry of table.fields.additional.placement: field:header:alias or field:envelope:alias.
struct Placement {
  std::string field;
  std::string alias;
  bool envelope{false};
};

std::string_view next_part(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view part = trimmed(text.substr(0, end));
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return part;
}

/// The value of the router's column with this name, else of the event's header; nullopt is null.
std::optional<std::string_view> field_value(const EventView& event, std::string_view field,
                                            event::Arena& arena) {
  if (field == "aggregatetype" || field == "aggregate_type") return event.aggregate_type;
  if (field == "aggregateid" || field == "aggregate_id") return event.aggregate_id;
  if (field == "type" || field == "event_type") return event.event_type;
  if (field == "id") return event::id_text(event.id, arena);
  if (field == "seq") return event::seq_text(event.seq, arena);
  const std::string_view header = event::find_header(event.headers, field, arena);
  return header.data() == nullptr ? std::nullopt : std::optional(header);
}

class Debezium final : public Format {
 public:
  Debezium(const SubscriptionSpec& spec, FieldErrors& errors)
      : json_(choice(spec, "converter", kConverters, errors) == "json"),
        expand_(choice(spec, "expand_json", kBooleans, errors) == "true"),
        rules_{
            .keep_nulls = choice(spec, "keep_nulls", kBooleans, errors) == "true",
            .keep_empty_arrays = choice(spec, "keep_empty_arrays", kBooleans, errors) == "true"} {
    check_options(spec, kDebeziumOptions, errors);
    if (const std::string* const placement = find_option(spec, "placement"))
      read_placements(*placement, errors);
    if (expand_ && !json_)
      errors.add({"format_options.expand_json", "needs converter = \"json\"",
                  "the string converter would write Java's text of a struct"});
    if (has_envelope_ && !json_)
      errors.add({"format_options.placement", "an envelope needs converter = \"json\"",
                  "the string converter would write Java's text of a struct"});
  }

  void write(Draft& draft) const override {
    const EventView& event = draft.event;
    draft.content_type = json_ ? "application/json" : event.content_type;
    draft.headers.push_back({.name = "id", .value = event::id_text(event.id, draft.arena)});
    for (const Placement& placement : placements_) {
      if (placement.envelope) continue;
      const auto value = field_value(event, placement.field, draft.arena);
      draft.headers.push_back(
          {.name = placement.alias, .value = value.value_or(""), .absent = !value});
    }
    if (!json_) {
      draft.body = event.payload;
      draft.tombstone = event.payload.empty();
      return;
    }
    std::string body;
    if (has_envelope_) {
      append_envelope(body, draft);
    } else {
      append_value(body, event);
    }
    draft.body = kept(body, draft.arena);
  }

 private:
  static std::string_view choice(const SubscriptionSpec& spec, std::string_view name,
                                 std::span<const std::string_view> choices, FieldErrors& errors) {
    const std::string* const given = find_option(spec, name);
    if (given == nullptr) return {};
    for (const std::string_view one : choices) {
      if (one == *given) return one;
    }
    errors.add({"format_options." + std::string(name), "unknown value " + in_quotes(*given),
                did_you_mean(*given, choices)});
    return {};
  }

  void read_placements(std::string_view text, FieldErrors& errors) {
    while (!text.empty()) {
      std::string_view one = next_part(text, ',');
      Placement placement;
      placement.field = next_part(one, ':');
      const std::string_view where = next_part(one, ':');
      placement.alias = one.empty() ? placement.field : std::string(trimmed(one));
      placement.envelope = where == "envelope";
      const bool known = where == "envelope" || where == "header";
      if (!known || !event::is_token(placement.field) || !event::is_token(placement.alias)) {
        return errors.add({"format_options.placement",
                           "expected field:header or field:envelope, found " +
                               in_quotes(placement.field + ":" + std::string(where)),
                           "for example type:header:eventType, traceparent:header"});
      }
      if (is_taken(placement)) {
        return errors.add(
            {"format_options.placement", in_quotes(placement.alias) + " is written already",
             "give it another name: " + placement.field + ":" + std::string(where) + ":NAME"});
      }
      has_envelope_ = has_envelope_ || placement.envelope;
      placements_.push_back(std::move(placement));
    }
  }

  /// Whether the message already has a header, or the envelope a member, of that name.
  [[nodiscard]] bool is_taken(const Placement& placement) const {
    const std::string_view ours = placement.envelope ? "payload" : "id";
    return event::same_header(placement.alias, ours) ||
           std::any_of(placements_.begin(), placements_.end(), [&](const Placement& other) {
             return other.envelope == placement.envelope &&
                    event::same_header(other.alias, placement.alias);
           });
  }

  void append_envelope(std::string& out, const Draft& draft) const {
    out.append("{\"payload\":");
    append_value(out, draft.event);
    for (const Placement& placement : placements_) {
      if (!placement.envelope) continue;
      out.push_back(',');
      append_connect_string(out, placement.alias);
      out.push_back(':');
      const auto value = field_value(draft.event, placement.field, draft.arena);
      if (value) {
        append_connect_string(out, *value);
      } else {
        out.append("null");
      }
    }
    out.push_back('}');
  }

  /// Appends the value. The router expands only objects and arrays; Connect writes bytes as base64.
  void append_value(std::string& out, const EventView& event) const {
    const std::string_view payload = event.payload;
    if (payload.empty()) {
      out.append("null");
    } else if (expand_ && (payload.front() == '{' || payload.front() == '[') &&
               event::is_json(payload)) {
      append_connect_json(out, payload, rules_);
    } else if (event::is_utf8(payload)) {
      append_connect_string(out, payload);
    } else {
      out.push_back('"');
      const std::size_t at = out.size();
      out.resize(at + event::base64_length(payload.size()));
      event::write_base64(payload, out.data() + at);
      out.push_back('"');
    }
  }

  const bool json_;
  const bool expand_;
  const ConnectJson rules_;
  std::vector<Placement> placements_;
  bool has_envelope_{false};
};

}  // namespace

FormatPointer debezium_format(const SubscriptionSpec& spec, FieldErrors& errors) {
  return std::make_shared<const Debezium>(spec, errors);
}

}  // namespace outbox::format
