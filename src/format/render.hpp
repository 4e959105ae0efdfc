// Renders events as messages for a sink, by the route and format of one subscription. Pure.
#pragma once

#include <optional>
#include <outbox/event.hpp>
#include <outbox/sink.hpp>
#include <outbox/subscription.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/field_error.hpp"
#include "event/arena.hpp"
#include "format/format.hpp"
#include "format/template.hpp"

namespace outbox::format {

/// Holds the messages of one send() and their strings. Reusing it spares allocations.
class RenderBuffer {
 public:
  void clear() {
    messages_.clear();
    arena_.clear();
  }
  /// The messages, valid until clear() or the next render().
  [[nodiscard]] std::span<const Message> messages() const { return messages_; }

 private:
  friend class Renderer;
  event::Arena arena_;
  std::vector<Message> messages_;
  std::vector<HeaderView> headers_;  ///< The headers of the message being rendered.
};

class Renderer {
 public:
  /// Refuses unknown formats and broken templates; the error names the field and the position.
  [[nodiscard]] static Result<Renderer> create(const SubscriptionSpec& spec);
  /// Adds everything that create() refuses.
  static void check(const SubscriptionSpec& spec, FieldErrors& errors);

  /// Takes over how the sink writes attributes. The default is as HTTP does.
  void bind(const SinkTraits& traits) { attribute_prefix_ = traits.attribute_prefix; }
  /// Appends one message. `event` and this renderer must outlive the message without being moved.
  void render(Token token, const EventView& event, RenderBuffer& into,
              std::size_t attempt = 1) const;

 private:
  using Headers = std::vector<std::pair<std::string, Template>>;

  Renderer(FormatPointer format, Template topic, Template key, Headers headers)
      : format_(std::move(format)),
        topic_(std::move(topic)),
        key_(std::move(key)),
        headers_(std::move(headers)) {}
  static Status check_header(const std::string& name, const Headers& before);
  /// Returns nullopt if there are errors.
  static std::optional<Renderer> compile(const SubscriptionSpec& spec, FieldErrors& errors);

  FormatPointer format_;
  std::string_view attribute_prefix_{SinkTraits().attribute_prefix};
  Template topic_;
  Template key_;
  Headers headers_;
};

}  // namespace outbox::format
