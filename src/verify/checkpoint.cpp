#include "verify/checkpoint.hpp"

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"

namespace outbox::verify {
namespace {

using Json = nlohmann::json;

/// Numbers above 2^53 would not survive every JSON library.
std::string digits(std::uint64_t number) { return std::to_string(number); }

std::uint64_t number(const Json& json) { return std::stoull(json.get<std::string>()); }

Json to_json(const store::VisiblePtr& snapshot) {
  if (snapshot == nullptr) return nullptr;
  Json running = Json::array();
  for (const std::uint64_t xid : snapshot->running) running.push_back(digits(xid));
  return {{"xmax", digits(snapshot->xmax)}, {"running", running}};
}

store::VisiblePtr read_snapshot(const Json& json) {
  if (json.is_null()) return nullptr;
  store::Visible snapshot{.xmax = number(json.at("xmax"))};
  for (const Json& xid : json.at("running")) snapshot.running.push_back(number(xid));
  return std::make_shared<const store::Visible>(std::move(snapshot));
}

Json to_json(const Compared& lanes) {
  return {{"lanes", digits(lanes.lanes)},  {"generation", lanes.row.generation},
          {"settlement", lanes.row.id},    {"s1", to_json(lanes.place.s1)},
          {"s2", to_json(lanes.place.s2)}, {"position", lanes.place.position},
          {"bound", lanes.place.bound}};
}

Compared read_compared(const Json& json) {
  Compared lanes{.lanes = number(json.at("lanes")),
                 .row = {.generation = json.at("generation").get<std::int64_t>(),
                         .id = json.at("settlement").get<std::int64_t>()},
                 .place = {.s1 = read_snapshot(json.at("s1")),
                           .s2 = read_snapshot(json.at("s2")),
                           .position = json.at("position").get<std::int64_t>(),
                           .bound = json.at("bound").get<std::int64_t>()}};
  if (lanes.place.s1 == nullptr) throw std::invalid_argument("a place without s1");
  return lanes;
}

}  // namespace

std::string to_text(const Checkpoint& checkpoint) {
  Json lanes = Json::array();
  for (const Compared& one : checkpoint.lanes) lanes.push_back(to_json(one));
  return write_json(Json{{"outbox", checkpoint.outbox}, {"lanes", lanes}});
}

Result<Checkpoint> read_checkpoint(std::string_view text) {
  Checkpoint checkpoint;
  if (text.empty()) return checkpoint;
  try {
    const Json json = parse_json<Json>(text);
    checkpoint.outbox = json.at("outbox").get<std::string>();
    for (const Json& one : json.at("lanes")) checkpoint.lanes.push_back(read_compared(one));
  } catch (const std::exception& error) {
    return fail(Errc::corrupt,
                std::string("the place of the verification cannot be read: ") + error.what(),
                "everything that is there is compared again");
  }
  return checkpoint;
}

}  // namespace outbox::verify
