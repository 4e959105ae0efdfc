#include "format/render.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "event/headers.hpp"
#include "event/text_rules.hpp"

namespace outbox::format {

Status Renderer::check_header(const std::string& name, const Headers& before) {
  OUTBOX_TRY(event::check_header_name("headers", name));
  if (event::same_header(name, event::kContentTypeHeader))
    return fail(Errc::invalid_argument, "headers: content-type is set by the format");
  const auto same = [&](const auto& other) { return event::same_header(other.first, name); };
  if (std::none_of(before.begin(), before.end(), same)) return {};
  return fail(Errc::invalid_argument, "headers: " + in_quotes(name) + " is given twice",
              "upper and lower case, and - and _, are the same in header names");
}

std::optional<Renderer> Renderer::compile(const SubscriptionSpec& spec, FieldErrors& errors) {
  FormatPointer format = make_format(spec, errors);
  auto topic = Template::compile("topic", spec.topic);
  if (!topic) errors.add(topic.error());
  auto key = Template::compile("key", spec.key);
  if (!key) errors.add(key.error());
  Headers headers;
  for (const auto& [name, text] : spec.headers) {
    if (auto status = check_header(name, headers); !status) errors.add(status.error());
    auto value = Template::compile("headers." + name, text);
    if (!value) {
      errors.add(value.error());
    } else {
      headers.emplace_back(name, std::move(*value));
    }
  }
  if (!errors.empty()) return std::nullopt;
  return Renderer(std::move(format), std::move(*topic), std::move(*key), std::move(headers));
}

Result<Renderer> Renderer::create(const SubscriptionSpec& spec) {
  FieldErrors errors;
  auto made = compile(spec, errors);
  OUTBOX_TRY(errors.status());
  return std::move(*made);
}

void Renderer::check(const SubscriptionSpec& spec, FieldErrors& errors) {
  (void)compile(spec, errors);
}

namespace {

/// Replaces every header that a destination may take for this one of the subscription.
void set_header(std::vector<HeaderView>& headers, HeaderView header) {
  const auto same = [&](const HeaderView& other) {
    return event::same_header(other.name, header.name);
  };
  const auto there = std::find_if(headers.begin(), headers.end(), same);
  if (there == headers.end()) return headers.push_back(header);
  *there = header;
  headers.erase(std::remove_if(there + 1, headers.end(), same), headers.end());
}

std::span<const HeaderView> keep(const std::vector<HeaderView>& headers, event::Arena& arena) {
  static_assert(std::is_trivially_copyable_v<HeaderView> && alignof(HeaderView) <= alignof(void*));
  const std::size_t size = headers.size() * sizeof(HeaderView);
  auto* const kept = reinterpret_cast<HeaderView*>(arena.allocate(size));
  std::memcpy(static_cast<void*>(kept), headers.data(), size);
  return {kept, headers.size()};
}

}  // namespace

void Renderer::render(Token token, const EventView& event, RenderBuffer& into,
                      std::size_t attempt) const {
  event::Arena& arena = into.arena_;
  std::vector<HeaderView>& headers = into.headers_;
  headers.clear();
  Draft draft{
      .event = event, .arena = arena, .attribute_prefix = attribute_prefix_, .headers = headers};
  format_->write(draft);
  for (const auto& [name, value] : headers_)
    set_header(headers, {.name = name, .value = value.render(event, arena)});
  into.messages_.push_back({.token = token,
                            .event = &event,
                            .topic = topic_.render(event, arena),
                            .key = std::nullopt,
                            .body = draft.body,
                            .tombstone = draft.tombstone,
                            .content_type = draft.content_type,
                            .headers = keep(headers, arena),
                            .attempt = attempt});
  if (!event.aggregate_id.empty()) into.messages_.back().key = key_.render(event, arena);
}

}  // namespace outbox::format
