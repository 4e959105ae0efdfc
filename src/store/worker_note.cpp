#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.hpp"
#include "store/tasks.hpp"

namespace outbox::store {
namespace {

using Json = nlohmann::ordered_json;

std::string read_text(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

DurationCounts read_counts(const Json& object) {
  DurationCounts counts;
  const auto runs = object.find("runs");
  if (runs == object.end() || !runs->is_object()) return counts;
  for (const auto& [bucket, count] : runs->items()) {
    std::size_t number = kDurationBuckets;
    (void)std::from_chars(bucket.data(), bucket.data() + bucket.size(), number);
    if (number < kDurationBuckets && count.is_number_unsigned())
      counts[number] = count.get<std::uint64_t>();
  }
  return counts;
}

}  // namespace

std::string to_json(const WorkerNote& note) {
  Json types = Json::array();
  for (const auto& type : note.types) {
    Json runs = Json::object();
    for (const auto& [bucket, count] : type.runs) runs[std::to_string(bucket)] = count;
    types.push_back({{"queue", type.queue}, {"type", type.name}, {"runs", std::move(runs)}});
  }
  const Json json{{"heartbeat_ms", note.heartbeat.count()}, {"types", std::move(types)}};
  return write_json(json);
}

WorkerNote parse_worker_note(std::string_view json) {
  WorkerNote note;
  const Json read = try_parse_json<Json>(json);
  if (!read.is_object()) return note;
  if (const auto ms = read.find("heartbeat_ms"); ms != read.end() && ms->is_number_unsigned())
    note.heartbeat = std::chrono::milliseconds(ms->get<std::uint32_t>());
  const auto types = read.find("types");
  if (types == read.end() || !types->is_array()) return note;
  for (const Json& type : *types) {
    if (!type.is_object()) continue;
    note.types.push_back({.queue = read_text(type, "queue"),
                          .name = read_text(type, "type"),
                          .runs = read_counts(type)});
  }
  return note;
}

}  // namespace outbox::store
