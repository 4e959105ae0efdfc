#include <algorithm>
#include <charconv>

#include "base/text.hpp"
#include "event/headers.hpp"
#include "event/id.hpp"
#include "event/time_text.hpp"
#include "format/format.hpp"

namespace outbox::format {
namespace {

constexpr std::size_t kLongestSeq = 20;  // The length of -9223372036854775808.

/// The content_type of the event takes precedence over a header of that name.
void drop_second_content_type(std::vector<HeaderView>& headers, std::size_t first_own) {
  const auto own = headers.begin() + static_cast<std::ptrdiff_t>(first_own);
  headers.erase(std::remove_if(own, headers.end(),
                               [](const auto& h) {
                                 return event::same_header(h.name, event::kContentTypeHeader);
                               }),
                headers.end());
}

class Raw final : public Format {
 public:
  void write(Draft& draft) const override {
    draft.body = draft.event.payload;
    draft.content_type = draft.event.content_type;
    add_attribute_headers(draft);
  }
};

}  // namespace

void add_attribute_headers(Draft& draft) {
  const EventView& event = draft.event;
  auto& headers = draft.headers;
  char* const text = draft.arena.allocate(event::kIdChars + event::kTimeChars + kLongestSeq);
  event::write_id(event.id, text);
  char* const time = text + event::kIdChars;
  event::write_time(event::happened_us(event), time);
  char* const seq = time + event::kTimeChars;
  const char* const seq_end = std::to_chars(seq, seq + kLongestSeq, event.seq).ptr;
  headers.push_back({.name = event::kIdHeader, .value = {text, event::kIdChars}});
  headers.push_back(
      {.name = "outbox-seq", .value = {seq, static_cast<std::size_t>(seq_end - seq)}});
  headers.push_back({.name = "outbox-time", .value = {time, event::kTimeChars}});
  headers.push_back({.name = "outbox-type", .value = event.event_type});
  headers.push_back({.name = "outbox-aggregate-type", .value = event.aggregate_type});
  if (!draft.content_type.empty())
    headers.push_back({.name = event::kContentTypeHeader, .value = draft.content_type});
  if (event::no_headers(event.headers)) return;
  const std::size_t first_own = headers.size();
  event::read_headers(event.headers, draft.arena, headers);
  if (!draft.content_type.empty()) drop_second_content_type(headers, first_own);
}

FormatPointer raw_format(const SubscriptionSpec& spec, FieldErrors& errors) {
  check_options(spec, {}, errors);
  return std::make_shared<const Raw>();
}

}  // namespace outbox::format
