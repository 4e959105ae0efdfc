#include "event/kinds.hpp"

#include <algorithm>

namespace outbox::event {
namespace {

bool alike(const EventView& a, const EventView& b) {
  return a.event_type == b.event_type && a.aggregate_type == b.aggregate_type;
}

}  // namespace

Kinds::Kinds(std::span<const EventView> events) {
  of_event_.reserve(events.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    const auto kind = std::find_if(first_.begin(), first_.end(), [&](std::size_t first) {
      return alike(events[first], events[i]);
    });
    if (kind == first_.end() && first_.size() == kMost) {
      *this = Kinds();
      return;
    }
    of_event_.push_back(static_cast<std::uint8_t>(kind - first_.begin()));
    if (kind == first_.end()) first_.push_back(i);
  }
}

}  // namespace outbox::event
