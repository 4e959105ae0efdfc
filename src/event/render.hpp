// Renders events as the messages that a sink gets: route and format of one subscription, applied. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <outbox/event.hpp>
#include <outbox/sink.hpp>
#include <outbox/subscription.hpp>
#include <span>
#include <string_view>

#include "base/field_error.hpp"

namespace outbox::event {

/// Holds the messages of one send() and the strings they point to. Reuse it, so that a message costs no allocation.
class RenderBuffer {
 public:
  RenderBuffer();
  ~RenderBuffer();
  RenderBuffer(const RenderBuffer&) = delete;
  RenderBuffer& operator=(const RenderBuffer&) = delete;
  RenderBuffer(RenderBuffer&&) noexcept;
  RenderBuffer& operator=(RenderBuffer&&) noexcept;

  void clear();
  /// Valid until clear() or the next render().
  [[nodiscard]] std::span<const Message> messages();

 private:
  friend class Renderer;
  struct State;
  std::unique_ptr<State> state_;
};

class Renderer {
 public:
  /// Refuses unknown formats and broken templates; the error names the field and the position.
  [[nodiscard]] static Result<Renderer> create(const SubscriptionSpec& spec);
  /// Everything that create() refuses.
  static void check(const SubscriptionSpec& spec, FieldErrors& errors);

  Renderer(Renderer&&) noexcept;
  Renderer& operator=(Renderer&&) noexcept;
  Renderer(const Renderer&) = delete;
  Renderer& operator=(const Renderer&) = delete;
  ~Renderer();

  /// Appends one message. `event` and this renderer must stay valid as long as the message.
  void render(Token token, const EventView& event, RenderBuffer& into) const;

 private:
  struct Plan;
  explicit Renderer(std::unique_ptr<Plan> plan);
  static std::unique_ptr<Plan> compile(const SubscriptionSpec& spec, FieldErrors& errors);
  std::unique_ptr<Plan> plan_;
};

}  // namespace outbox::event
