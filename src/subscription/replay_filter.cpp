#include "subscription/replay_filter.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "event/time_text.hpp"

namespace outbox::subscription {
namespace {

using Json = nlohmann::ordered_json;

SubscriptionSpec make_spec(const ReplayChoice& choice) {
  SubscriptionSpec spec;
  spec.event_types = choice.event_types;
  spec.aggregate_types = choice.aggregate_types;
  spec.match_headers = choice.match_headers;
  return spec;
}

}  // namespace

std::string to_json(const ReplayChoice& choice) {
  Json json = Json::object();
  if (!choice.event_types.empty()) json["event_types"] = choice.event_types;
  if (!choice.aggregate_types.empty()) json["aggregate_types"] = choice.aggregate_types;
  if (!choice.match_headers.empty()) json["match_headers"] = choice.match_headers;
  if (!choice.aggregate_id.empty()) json["key"] = {choice.aggregate_type, choice.aggregate_id};
  for (const EventId& id : choice.ids) json["ids"].push_back(id.str());
  if (choice.since_us) json["since_us"] = *choice.since_us;
  if (choice.until_us) json["until_us"] = *choice.until_us;
  return write_json(json);
}

Result<ReplayChoice> replay_choice_from_json(std::string_view text) {
  try {
    const Json json = parse_json<Json>(text);
    ReplayChoice choice;
    choice.event_types = json.value("event_types", choice.event_types);
    choice.aggregate_types = json.value("aggregate_types", choice.aggregate_types);
    choice.match_headers = json.value("match_headers", choice.match_headers);
    if (json.contains("key")) {
      choice.aggregate_type = json.at("key").at(0).get<std::string>();
      choice.aggregate_id = json.at("key").at(1).get<std::string>();
    }
    for (const Json& id : json.value("ids", Json::array())) {
      OUTBOX_TRY(const EventId parsed, EventId::parse(id.get<std::string>()));
      choice.ids.push_back(parsed);
    }
    if (json.contains("since_us")) choice.since_us = json.at("since_us").get<std::int64_t>();
    if (json.contains("until_us")) choice.until_us = json.at("until_us").get<std::int64_t>();
    return choice;
  } catch (const Json::exception&) {
    // Without its filter this would be another replay.
    return fail(Errc::corrupt, "the stored filter of a replay cannot be read");
  }
}

ReplayFilter::ReplayFilter(const ReplayChoice& choice)
    : filter_(make_spec(choice)),
      aggregate_type_(choice.aggregate_type),
      aggregate_id_(choice.aggregate_id),
      ids_(choice.ids.begin(), choice.ids.end()),
      since_us_(choice.since_us),
      until_us_(choice.until_us) {}

bool ReplayFilter::matches(const EventView& event) const {
  if (!ids_.empty() && !ids_.contains(event.id)) return false;
  if (!aggregate_id_.empty() &&
      (event.aggregate_type != aggregate_type_ || event.aggregate_id != aggregate_id_))
    return false;
  const std::int64_t created_us = event::to_us(event.created_at);
  if (created_us < since_us_.value_or(created_us)) return false;
  if (until_us_ && created_us >= *until_us_) return false;
  return filter_.matches(event);
}

}  // namespace outbox::subscription
