#include "cli/parked_errors.hpp"

#include <algorithm>

namespace outbox::cli {

void ParkedErrors::add(const store::ParkedListing& event) {
  const auto place = std::pair(event.subscription, event.error);
  auto found = groups_.find(place);
  if (found == groups_.end()) {
    if (groups_.size() == kMostGroups) {
      ++others_;
      return;
    }
    found =
        groups_.emplace(place, ErrorGroup{.first_us = event.parked_at_us, .newest = event}).first;
  }
  ErrorGroup& group = found->second;
  ++group.events;
  if (event.state == store::ParkedState::dead) ++group.dead;
  group.first_us = std::min(group.first_us, event.parked_at_us);
  if (event.parked_at_us >= group.newest.parked_at_us) group.newest = event;
}

std::vector<ErrorGroup> ParkedErrors::groups() const {
  std::vector<ErrorGroup> all;
  all.reserve(groups_.size());
  for (const auto& [place, group] : groups_) all.push_back(group);
  std::stable_sort(all.begin(), all.end(), [](const ErrorGroup& one, const ErrorGroup& other) {
    return one.events > other.events;
  });
  return all;
}

}  // namespace outbox::cli
