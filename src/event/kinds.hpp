// The kinds of some events: events of a kind look alike to a filter without headers. They are found
// once, for all subscriptions that read the events. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <outbox/event.hpp>
#include <span>
#include <vector>

namespace outbox::event {

class Kinds {
 public:
  /// With more kinds than this, sorting is not worth its cost.
  static constexpr std::size_t kMost = 32;

  Kinds() = default;
  explicit Kinds(std::span<const EventView> events);

  /// Whether the events were sorted into kinds. They were not if there are more than kMost.
  [[nodiscard]] bool known() const { return !first_.empty(); }
  /// The kind of each event, below first().size().
  [[nodiscard]] const std::vector<std::uint8_t>& of_event() const { return of_event_; }
  /// The index of the first event of each kind, in the order in which the kinds occur.
  [[nodiscard]] const std::vector<std::size_t>& first() const { return first_; }

 private:
  std::vector<std::uint8_t> of_event_;
  std::vector<std::size_t> first_;
};

}  // namespace outbox::event
