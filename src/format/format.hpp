// The formats of messages. A format is a class in its own file and a line in format.cpp. Pure.
#pragma once

#include <memory>
#include <outbox/event.hpp>
#include <outbox/sink.hpp>
#include <outbox/subscription.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/field_error.hpp"
#include "event/arena.hpp"

namespace outbox::format {

/// What a format fills in for one message.
struct Draft {
  const EventView& event;
  event::Arena& arena;
  std::string_view attribute_prefix;  ///< SinkTraits::attribute_prefix
  std::string_view body{};
  bool tombstone{false};
  std::string_view content_type{};
  std::vector<HeaderView>& headers;  ///< The headers, which are empty at first.
};

class Format {
 public:
  Format() = default;
  Format(const Format&) = delete;
  Format& operator=(const Format&) = delete;
  Format(Format&&) = delete;
  Format& operator=(Format&&) = delete;
  virtual ~Format() = default;

  virtual void write(Draft& draft) const = 0;
};

using FormatPointer = std::shared_ptr<const Format>;

/// The format's option with this name; null if it is not given.
[[nodiscard]] const std::string* find_option(const SubscriptionSpec& spec, std::string_view name);
/// Adds an error for each option that the format does not have.
void check_options(const SubscriptionSpec& spec, std::span<const std::string_view> known,
                   FieldErrors& errors);

/// Payload as the body, attributes as headers.
[[nodiscard]] FormatPointer raw_format(const SubscriptionSpec& spec, FieldErrors& errors);
/// One JSON envelope with everything, and the same headers.
[[nodiscard]] FormatPointer json_format(const SubscriptionSpec& spec, FieldErrors& errors);
/// CloudEvents 1.0 in binary and in structured mode.
[[nodiscard]] FormatPointer cloudevents_format(const SubscriptionSpec& spec, FieldErrors& errors);
[[nodiscard]] FormatPointer cloudevents_json_format(const SubscriptionSpec& spec,
                                                    FieldErrors& errors);
/// The message of Debezium's outbox event router.
[[nodiscard]] FormatPointer debezium_format(const SubscriptionSpec& spec, FieldErrors& errors);

/// Adds the headers of raw and json: outbox-id, outbox-seq, outbox-time, outbox-type,
/// outbox-aggregate-type, content-type (of the draft) if it is known, and then the event's own.
void add_attribute_headers(Draft& draft);

/// The header that has the event's id, by which a destination is read back.
[[nodiscard]] std::string id_header(std::string_view format, std::string_view attribute_prefix);

[[nodiscard]] std::span<const std::string_view> format_names();
/// After an error the result is null or must not be used.
[[nodiscard]] FormatPointer make_format(const SubscriptionSpec& spec, FieldErrors& errors);

}  // namespace outbox::format
