#include "event/filter.hpp"

#include <algorithm>
#include <iterator>

#include "base/text.hpp"
#include "event/json_scan.hpp"
#include "event/task.hpp"

namespace outbox::event {
namespace {

/// The index of the next character; a UTF-8 sequence is one.
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
    const auto fault = for_each_member(json, [&](JsonString name, std::string_view value) {
      there = there || (equal_ignoring_case(decode_json(name), header.first) &&
                        json_text(value) == header.second);
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
  std::size_t star = none;    // the last '*' so far
  std::size_t star_text = 0;  // where the text after that '*' is tried next
  // Backtracks to the last '*' only: a shorter match of an earlier one could not help. At most |glob| * |text| steps.
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

Filter::Filter(const SubscriptionSpec& spec)
    : event_types_(spec.event_types),
      aggregate_types_(spec.aggregate_types),
      headers_(spec.match_headers) {
  const auto takes_all = [](const std::vector<std::string>& globs) {
    return globs.empty() || std::find(globs.begin(), globs.end(), "*") != globs.end();
  };
  if (takes_all(event_types_)) event_types_.clear();
  std::copy_if(aggregate_types_.begin(), aggregate_types_.end(), std::back_inserter(queues_),
               is_task);
  if (takes_all(aggregate_types_)) aggregate_types_.clear();
}

bool Filter::matches_type(const EventView& event) const {
  if (!is_task(event.aggregate_type)) return any_matches(aggregate_types_, event.aggregate_type);
  return std::find(queues_.begin(), queues_.end(), event.aggregate_type) != queues_.end();
}

bool Filter::matches(const EventView& event) const {
  return matches_type(event) && any_matches(event_types_, event.event_type) &&
         (headers_.empty() || all_there(headers_, event.headers));
}

}  // namespace outbox::event
