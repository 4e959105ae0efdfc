#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "store/diagnosis.hpp"

namespace outbox::store {
namespace {

using Key = std::tuple<std::string_view, std::string_view, std::string_view>;
using ByKey = std::map<Key, const Definition*>;

Key make_key(const Definition& one) { return {one.object, one.part, one.grantee}; }

ByKey by_key(const Definitions& list) {
  ByKey map;
  for (const Definition& one : list) map.emplace(make_key(one), &one);
  return map;
}

const Definition* find(const ByKey& map, const Definition& one) {
  const auto found = map.find(make_key(one));
  return found == map.end() ? nullptr : found->second;
}

bool has(const ByKey& map, const Definition& one) {
  const Definition* const same = find(map, one);
  return same != nullptr && *same == one;
}

/// Whether the definition is removed together with another one, as "default of column c" with
/// "column c".
bool goes_with_another(const Definition& one, const Definitions& added) {
  return std::any_of(added.begin(), added.end(), [&](const Definition& other) {
    return !other.part.empty() && other.object == one.object &&
           one.part.ends_with(" " + other.part);
  });
}

}  // namespace

std::string made_by(const Definitions& list) {
  const auto found = std::find_if(list.begin(), list.end(), [](const Definition& one) {
    return one.object.empty() && one.part == "made by";
  });
  return found == list.end() ? "" : found->makes;
}

std::vector<DefinitionChange> changes_between(const Definitions& wanted, const Definitions& found) {
  const ByKey are = by_key(found);
  const ByKey should = by_key(wanted);
  std::set<std::string_view> ours;
  std::vector<DefinitionChange> changes;
  for (const Definition& one : wanted) {
    ours.insert(one.object);
    const Definition* const is = find(are, one);
    if (one.object.empty() || (is != nullptr && is->makes == one.makes)) continue;
    changes.push_back({.wanted = one, .found = is == nullptr ? std::nullopt : std::optional(*is)});
  }
  Definitions added;
  for (const Definition& one : found) {
    const bool harmless = one.object.empty() || one.part.starts_with("index ");
    if (!harmless && ours.contains(one.object) && find(should, one) == nullptr)
      added.push_back(one);
  }
  for (const Definition& one : added) {
    if (!goes_with_another(one, added)) changes.push_back({.wanted = {}, .found = one});
  }
  return changes;
}

Definitions wanted_after(const Definitions& wanted, const Definitions& before,
                         const Definitions& after) {
  const ByKey should = by_key(wanted);
  const ByKey were = by_key(before);
  const ByKey are = by_key(after);
  Definitions result;
  for (const Definition& one : after) {
    const bool unchanged = has(were, one) && !one.object.empty();
    const Definition* const was_wanted = find(should, one);
    if (!unchanged) {
      result.push_back(one);
    } else if (was_wanted != nullptr) {
      result.push_back(*was_wanted);
    }
  }
  for (const Definition& one : wanted) {
    const bool missed = find(were, one) == nullptr && find(are, one) == nullptr;
    if (missed && !one.object.empty()) result.push_back(one);
  }
  return result;
}

}  // namespace outbox::store
