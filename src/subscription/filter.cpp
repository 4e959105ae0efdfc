#include "subscription/filter.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/text.hpp"
#include "event/json_scan.hpp"
#include "event/task.hpp"

namespace outbox::subscription {
namespace {

/// The index of the next character; a UTF-8 sequence is one character.
std::size_t next_character(std::string_view text, std::size_t at) noexcept {
  const auto continues = [&](std::size_t i) {
    return (static_cast<unsigned char>(text[i]) & 0xc0U) == 0x80U;
  };
  ++at;
  while (at < text.size() && continues(at)) ++at;
  return at;
}

bool any_matches(const std::vector<std::string>& globs, std::string_view text) {
  return globs.empty() || std::any_of(globs.begin(), globs.end(),
                                      [&](const auto& glob) { return glob_match(glob, text); });
}

bool all_there(const std::map<std::string, std::string>& wanted, std::string_view json) {
  for (const auto& header : wanted) {
    bool there = false;
    const auto fault =
        event::for_each_member(json, [&](event::JsonString name, std::string_view value) {
          there = there || (equal_ignoring_case(event::decode_json(name), header.first) &&
                            event::json_text(value) == header.second);
        });
    if (fault || !there) return false;
  }
  return true;
}

}  // namespace

bool glob_match(std::string_view glob, std::string_view text) noexcept {
  constexpr std::size_t none = std::string_view::npos;
  std::size_t g = 0;
  std::size_t t = 0;
  std::size_t star = none;    // The last '*' so far.
  std::size_t star_text = 0;  // Where the text after that '*' is tried next.
  // Backtracks to the last '*' only, because a shorter match of an earlier one could not help. This
  // takes at most |glob| * |text| steps.
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      star_text = t;
    } else if (g < glob.size() && glob[g] == '?') {
      ++g;
      t = next_character(text, t);
    } else if (g < glob.size() && glob[g] == text[t]) {
      ++g;
      ++t;
    } else if (star != none) {
      g = star + 1;
      t = star_text = next_character(text, star_text);
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

Filter::Filter(const SubscriptionSpec& spec, std::vector<std::string> left_out)
    : event_types_(spec.event_types),
      aggregate_types_(spec.aggregate_types),
      headers_(spec.match_headers),
      left_out_(std::move(left_out)) {
  const auto takes_all = [](const std::vector<std::string>& globs) {
    return globs.empty() || std::find(globs.begin(), globs.end(), "*") != globs.end();
  };
  if (takes_all(event_types_)) event_types_.clear();
  std::copy_if(aggregate_types_.begin(), aggregate_types_.end(), std::back_inserter(queues_),
               event::is_task);
  if (takes_all(aggregate_types_)) aggregate_types_.clear();
}

bool Filter::matches_type(const EventView& event) const {
  if (!event::is_task(event.aggregate_type))
    return any_matches(aggregate_types_, event.aggregate_type);
  const auto contains = [](const std::vector<std::string>& all, std::string_view one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  return contains(queues_, event.aggregate_type) && !contains(left_out_, event.event_type);
}

bool Filter::matches_kind(const EventView& event) const {
  return matches_type(event) && any_matches(event_types_, event.event_type);
}

bool Filter::matches(const EventView& event) const {
  return matches_kind(event) && (headers_.empty() || all_there(headers_, event.headers));
}

void Filter::mark(std::span<const EventView> events, const event::Kinds& kinds,
                  std::vector<std::uint8_t>& marks) const {
  marks.clear();
  if (!kinds.known() || !headers_.empty()) {
    for (const EventView& event : events) marks.push_back(matches(event) ? 1 : 0);
    return;
  }
  std::array<std::uint8_t, event::Kinds::kMost> wanted{};
  for (std::size_t kind = 0; kind < kinds.first().size(); ++kind)
    wanted.at(kind) = matches_kind(events[kinds.first()[kind]]) ? 1 : 0;
  for (const std::uint8_t kind : kinds.of_event()) marks.push_back(wanted[kind]);
}

bool Filter::surely_none(std::span<const EventView> events, const event::Kinds& kinds) const {
  return kinds.known() &&
         std::none_of(kinds.first().begin(), kinds.first().end(),
                      [&](std::size_t first) { return matches_kind(events[first]); });
}

}  // namespace outbox::subscription
