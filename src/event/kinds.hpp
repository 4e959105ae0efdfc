// The kinds among some events: those that look alike to a filter without headers. Found once, for all subscriptions that read them.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <outbox/event.hpp>
#include <span>
#include <vector>

namespace outbox::event {

class Kinds {
 public:
  /// More are not worth it.
  static constexpr std::size_t kMost = 32;

  Kinds() = default;
  explicit Kinds(std::span<const EventView> events);

  /// False: not looked for, or too many.
  [[nodiscard]] bool known() const { return !first_.empty(); }
  /// Of each event; below first().size().
  [[nodiscard]] const std::vector<std::uint8_t>& of_event() const { return of_event_; }
  /// Of each kind the first event.
  [[nodiscard]] const std::vector<std::size_t>& first() const { return first_; }

 private:
  std::vector<std::uint8_t> of_event_;
  std::vector<std::size_t> first_;
};

}  // namespace outbox::event
