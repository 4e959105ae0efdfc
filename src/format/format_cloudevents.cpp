// CloudEvents 1.0.2 (https://github.com/cloudevents/spec): in binary mode, by the protocol binding
// of each destination, and in structured mode (formats/json-format), with the extensions
// partitioning, distributed tracing and correlation.
#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/text.hpp"
#include "event/attribute_text.hpp"
#include "event/base64.hpp"
#include "event/content_type.hpp"
#include "event/headers.hpp"
#include "event/json_scan.hpp"
#include "event/json_write.hpp"
#include "event/time_text.hpp"
#include "event/utf8.hpp"
#include "format/format.hpp"
#include "format/template.hpp"

namespace outbox::format {
namespace {

constexpr std::size_t kLongestExtension = 20;
constexpr std::array<std::string_view, 4> kCloudEventsOptions{"source", "type", "subject",
                                                              "dataschema"};
/// Names that no extension may have: attributes of the specification and this format, and the data.
constexpr std::array<std::string_view, 12> kTaken{
    "specversion",     "id",         "source", "type",         "subject",   "time",
    "datacontenttype", "dataschema", "data",   "partitionkey", "outboxseq", "database64"};

struct Attribute {
  std::string_view name;
  std::string_view value;
};

bool is_taken(std::string_view name) {
  return std::find(kTaken.begin(), kTaken.end(), name) != kTaken.end();
}

bool has_header(std::span<const HeaderView> headers, std::string_view name) {
  return std::any_of(headers.begin(), headers.end(),
                     [&](const HeaderView& header) { return header.name == name; });
}

/// The extension that a header becomes; empty if none. `all` are the headers of its event, no two
/// of which become the same extension.
std::string_view find_extension(std::string_view header, std::span<const HeaderView> all) {
  if (header == "correlation_id") return "correlationid";
  if (header == "causation_id") return "causationid";
  if (header == "correlationid" && has_header(all, "correlation_id")) return {};
  if (header == "causationid" && has_header(all, "causation_id")) return {};
  const bool legal =
      !header.empty() && header.size() <= kLongestExtension &&
      std::all_of(header.begin(), header.end(), [](char c) { return is_lower(c) || is_digit(c); });
  return legal && !is_taken(header) ? header : std::string_view();
}

/// The text as a URI-reference: other characters, and percent signs without an escape, are encoded.
std::string_view as_uri(std::string_view text, event::Arena& arena) {
  constexpr std::string_view plain = "-._~:/?#[]@!$&'()*+,;=";
  const auto allowed = [&](std::size_t at) {
    const char c = text[at];
    if (c == '%')
      return at + 2 < text.size() && hex_value(text[at + 1]) >= 0 && hex_value(text[at + 2]) >= 0;
    return is_alnum(c) || plain.find(c) != std::string_view::npos;
  };
  std::string encoded;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (allowed(at)) {
      encoded.push_back(text[at]);
    } else {
      append_hex(encoded.append(1, '%'), text[at], kUpperHexDigits);
    }
  }
  return encoded == text ? text : kept(encoded, arena);
}

/// Encodes space, '"', '%' and everything outside of U+0021 to U+007E (HTTP binding, 3.1.3.2).
std::string_view as_http_value(std::string_view text, event::Arena& arena) {
  constexpr std::string_view plain = "!#$&'()*+,-./:;<=>?@[\\]^_`{|}~";
  const auto allowed = [&](char c) {
    return is_alnum(c) || plain.find(c) != std::string_view::npos;
  };
  if (std::all_of(text.begin(), text.end(), allowed)) return text;
  return kept(percent_encoded(text, plain), arena);
}

class CloudEvents : public Format {
 public:
  CloudEvents(const SubscriptionSpec& spec, FieldErrors& errors)
      : source_(compile(spec, "source", "/{aggregate_type|kebab}", errors)),
        type_(compile(spec, "type", "{event_type}", errors)),
        subject_(compile(spec, "subject", "{aggregate_id}", errors)),
        dataschema_(compile(spec, "dataschema", "", errors)) {
    check_options(spec, kCloudEventsOptions, errors);
    for (const std::string_view required : {"source", "type"}) {
      const std::string* const given = find_option(spec, required);
      if (given != nullptr && given->empty())
        errors.add(
            {"format_options." + std::string(required), "is empty: CloudEvents requires it"});
    }
  }

 protected:
  /// Visits the attributes without datacontenttype, in a fixed order, and then the event's headers
  /// as extensions. Other headers and those of tracing go to `plain`. A header with the prefix of
  /// attributes is left out, because receivers would take it for an attribute.
  template <class Visit>
  void attributes(Draft& draft, std::vector<HeaderView>& plain, Visit visit) const {
    const EventView& event = draft.event;
    event::Arena& arena = draft.arena;
    visit(Attribute{"specversion", "1.0"});
    visit(Attribute{"id", event::id_text(event.id, arena)});
    visit(Attribute{"source", as_uri(source_.render(event, arena), arena)});
    visit(Attribute{"type", type_.render(event, arena)});
    visit(Attribute{"time", event::time_text(event::happened_us(event), arena)});
    visit(Attribute{"subject", subject_.render(event, arena)});
    visit(Attribute{"dataschema", as_uri(dataschema_.render(event, arena), arena)});
    visit(Attribute{"partitionkey", event.aggregate_id});
    visit(Attribute{"outboxseq", event::seq_text(event.seq, arena)});
    std::vector<HeaderView> own;
    event::read_headers(event.headers, arena, own);
    for (const HeaderView& header : own) {
      const std::string_view extension = find_extension(header.name, own);
      if (!extension.empty()) visit(Attribute{extension, header.value});
      const bool traces = extension == "traceparent" || extension == "tracestate";
      const bool is_ours = event::same_header(header.name, event::kContentTypeHeader) ||
                           event::has_header_prefix(header.name, draft.attribute_prefix);
      if ((extension.empty() || traces) && !is_ours) plain.push_back(header);
    }
  }

 private:
  static Template compile(const SubscriptionSpec& spec, std::string_view name,
                          std::string_view otherwise, FieldErrors& errors) {
    const std::string* const given = find_option(spec, name);
    auto made = Template::compile("format_options." + std::string(name),
                                  given == nullptr ? otherwise : std::string_view(*given));
    if (made) return std::move(*made);
    errors.add(made.error());
    return {};
  }

  Template source_;
  Template type_;
  Template subject_;
  Template dataschema_;
};

class Binary final : public CloudEvents {
 public:
  using CloudEvents::CloudEvents;

  void write(Draft& draft) const override {
    draft.body = draft.event.payload;
    draft.content_type = draft.event.content_type;
    std::vector<HeaderView> plain;
    const bool encodes = draft.attribute_prefix == "ce-";
    attributes(draft, plain, [&](const Attribute& attribute) {
      if (attribute.value.empty()) return;  // An attribute is absent or not empty.
      draft.headers.push_back(
          {.name = prefixed(draft, attribute.name),
           .value = encodes ? as_http_value(attribute.value, draft.arena) : attribute.value});
    });
    if (!draft.content_type.empty())
      draft.headers.push_back({.name = event::kContentTypeHeader, .value = draft.content_type});
    draft.headers.insert(draft.headers.end(), plain.begin(), plain.end());
  }

 private:
  static std::string_view prefixed(const Draft& draft, std::string_view name) {
    const std::size_t size = draft.attribute_prefix.size() + name.size();
    char* const to = draft.arena.allocate(size);
    std::copy(name.begin(), name.end(),
              std::copy(draft.attribute_prefix.begin(), draft.attribute_prefix.end(), to));
    return {to, size};
  }
};

class Structured final : public CloudEvents {
 public:
  using CloudEvents::CloudEvents;

  void write(Draft& draft) const override {
    std::vector<Attribute> all;
    std::vector<HeaderView> plain;
    attributes(draft, plain, [&](const Attribute& attribute) { all.push_back(attribute); });
    draft.body = body(draft, all);
    draft.content_type = "application/cloudevents+json; charset=utf-8";
    draft.headers.push_back(
        {.name = event::kIdHeader, .value = event::id_text(draft.event.id, draft.arena)});
    draft.headers.push_back(
        {.name = "outbox-seq", .value = event::seq_text(draft.event.seq, draft.arena)});
    draft.headers.push_back({.name = event::kContentTypeHeader, .value = draft.content_type});
    draft.headers.insert(draft.headers.end(), plain.begin(), plain.end());
  }

 private:
  static std::string_view body(const Draft& draft, const std::vector<Attribute>& attributes) {
    event::ArenaText out(draft.arena);
    for (const auto& [name, value] : attributes) {
      if (value.empty()) continue;
      out.append(name == "specversion" ? "{\"" : ",\"");
      out.append(name);
      out.append("\":");
      event::append_json_string(out, value);
    }
    append_data(out, draft.event);
    out.push_back('}');
    return out.finish();
  }
  /// JSON format, 3.1: without datacontenttype data is JSON; with another type a JSON string holds
  /// text, and data_base64 holds bytes.
  static void append_data(event::ArenaText& out, const EventView& event) {
    std::string_view type = event.content_type;
    const bool json = (type.empty() || event::is_json_type(type)) && event::is_json(event.payload);
    const bool text = !json && event::is_utf8(event.payload) && !event::is_json_type(type);
    if (type.empty() && text) type = "text/plain; charset=utf-8";
    if (type.empty() && !json) type = "application/octet-stream";
    if (!type.empty()) {
      out.append(",\"datacontenttype\":");
      event::append_json_string(out, type);
    }
    if (json) {
      out.append(",\"data\":");
      out.append(event.payload);
    } else if (text) {
      out.append(",\"data\":");
      event::append_json_string(out, event.payload);
    } else {
      out.append(",\"data_base64\":\"");
      event::write_base64(event.payload, out.extend(event::base64_length(event.payload.size())));
      out.push_back('"');
    }
  }
};

}  // namespace

FormatPointer cloudevents_format(const SubscriptionSpec& spec, FieldErrors& errors) {
  return std::make_shared<const Binary>(spec, errors);
}

FormatPointer cloudevents_json_format(const SubscriptionSpec& spec, FieldErrors& errors) {
  return std::make_shared<const Structured>(spec, errors);
}

}  // namespace outbox::format
