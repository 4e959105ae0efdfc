// The checks of a consumer's settings.
#include <array>
#include <outbox/consumer.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/field_error.hpp"
#include "base/text.hpp"
#include "event/task.hpp"
#include "event/text_rules.hpp"
#include "source/registry.hpp"
#include "source/spot.hpp"

namespace outbox {
namespace {

constexpr std::size_t kMostBatch = 10'000;

Status check_spot(std::string_view field, const std::string& text) {
  auto spot = source::Spot::parse(field, text);
  return spot ? Status{} : Status(pass(spot));
}

}  // namespace

namespace source {

Result<Spot> Spot::parse(std::string_view field, std::string_view text) {
  if (text.empty()) return Spot{};
  if (text == "place" && field == "id") return Spot{.kind = Kind::place};
  constexpr std::array<std::pair<std::string_view, Kind>, 3> kKinds{
      {{"header:", Kind::header}, {"json:", Kind::json}, {"text:", Kind::text}}};
  for (const auto& [prefix, kind] : kKinds) {
    if (text.starts_with(prefix) && text.size() > prefix.size())
      return Spot{.kind = kind, .name = std::string(text.substr(prefix.size()))};
  }
  return bad_field(std::string(field), in_quotes(text) + " says no place in a message",
                   field == "id" ? "header:NAME, json:PATH, text:TEXT or place"
                                 : "header:NAME, json:PATH or text:TEXT");
}

}  // namespace source

Status validate(const ConsumerSpec& spec) {
  OUTBOX_TRY(event::check_plain_name("name", spec.name));
  if (spec.name.starts_with("task."))
    return bad_field("name", "begins with task., as the names do by which workers remember effects",
                     "choose another name");
  if (source::find_kind(spec.source) == nullptr) {
    auto none = source::make_source(spec);
    return pass(none);
  }
  if (spec.read.empty())
    return bad_field("read", "is empty",
                     "name the " + source::find_kind(spec.source)->reads + " to read");
  for (const std::string& name : spec.read) {
    OUTBOX_TRY(event::check_required_name("read", name));
  }
  if (!spec.group.empty()) {
    OUTBOX_TRY(event::check_required_name("group", spec.group));
  }
  OUTBOX_TRY(event::check_queue(spec.queue));
  OUTBOX_TRY(check_spot("id", spec.id));
  OUTBOX_TRY(check_spot("type", spec.type));
  OUTBOX_TRY(check_spot("key", spec.key));
  OUTBOX_TRY(check_spot("seq", spec.seq));
  if (spec.batch == 0 || spec.batch > kMostBatch)
    return bad_field("batch", "must be from 1 to " + std::to_string(kMostBatch));
  if (spec.max_pending == 0) return bad_field("max_pending", "must be at least 1");
  return {};
}

}  // namespace outbox
