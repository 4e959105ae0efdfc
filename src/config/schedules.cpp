#include "config/schedules.hpp"

#include <utility>

#include "base/text.hpp"
#include "config/section.hpp"

namespace outbox::config {
namespace {

/// The title as it is written in a file, where a name with a dot needs quotes.
std::string make_title(const std::string& name) {
  return "schedule." + (name.find('.') == std::string::npos ? name : quote(name));
}

void read_member(const Member& member, Section<Schedule>& schedule) {
  std::vector<std::string_view> known;
  for (const auto& row : schedule_settings()) {
    if (row.setting.name == member.key) return schedule.read(row, member);
    known.emplace_back(row.setting.name);
  }
  schedule.complain_about_unknown(member, known);
}

void check(const Section<Schedule>& schedule, Reading& reading) {
  const Status status = validate(schedule.effective);
  if (status) return;
  const std::string& message = status.error().message;
  // The message begins with the setting.
  const Position at = schedule.find_position(message.substr(0, message.find(':')));
  reading.complain(schedule.path(), at, status.error());
}

}  // namespace

std::optional<Schedule> read_schedule(const Member& member, Reading& reading) {
  Section<Schedule> schedule("schedule." + member.key, make_title(member.key), member.at, true,
                             reading);
  schedule.effective.name = schedule.written.name = member.key;
  const std::size_t before = reading.problems.size();
  auto* const table = reading.table(member, schedule.path());
  if (table == nullptr) return std::nullopt;
  for (const Member& setting : members(*table)) read_member(setting, schedule);
  if (reading.problems.size() == before) check(schedule, reading);
  if (reading.problems.size() != before) return std::nullopt;
  for (const auto& row : schedule_settings()) schedule.add_entry(row);
  return std::move(schedule.effective);
}

}  // namespace outbox::config
