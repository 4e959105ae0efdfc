#include "config/schedules.hpp"

#include <map>
#include <utility>

#include "base/text.hpp"

namespace outbox::config {
namespace {

class ScheduleReader {
 public:
  ScheduleReader(const Member& section, Reading& reading)
      : section_(section), reading_(reading), path_("schedule." + section.key) {
    effective_.name = written_.name = section.key;
  }

  std::optional<Schedule> read() {
    const std::size_t before = reading_.problems.size();
    auto* const table = reading_.table(section_, path_);
    if (table == nullptr) return std::nullopt;
    for (const Member& member : members(*table)) read_member(member);
    if (reading_.problems.size() == before) check();
    if (reading_.problems.size() != before) return std::nullopt;
    add_entries();
    return std::move(effective_);
  }

 private:
  void read_member(const Member& member) {
    std::vector<std::string_view> known;
    for (const auto& row : schedule_settings()) {
      if (row.setting.name == member.key) return read_setting(row, member);
      known.emplace_back(row.setting.name);
    }
    const std::string path = path_ + "." + member.key;
    reading_.complain("unknown setting " + path, path, member.at, did_you_mean(member.key, known));
  }

  void read_setting(const SettingRow<Schedule>& row, const Member& member) {
    const std::string path = path_ + "." + member.key;
    positions_[member.key] = position(*member.value);
    if (auto status = assign(row.setting, row.slot(written_), *member.value); !status)
      return reading_.complain(path, position(*member.value), status.error());
    if (!reading_.take_references(*member.value, path, true)) return;
    (void)assign(row.setting, row.slot(effective_), *member.value);
  }

  void check() {
    const Status status = validate(effective_);
    if (!status) reading_.complain(path_, position_of(status.error()), status.error());
  }

  /// Of the setting that the message begins with.
  [[nodiscard]] Position position_of(const Error& error) const {
    const auto found = positions_.find(error.message.substr(0, error.message.find(':')));
    return found == positions_.end() ? section_.at : found->second;
  }

  /// As it is written in a file: a name with a dot needs quotes.
  [[nodiscard]] std::string section_path() const {
    return section_.key.find('.') == std::string::npos ? path_ : "schedule." + quote(section_.key);
  }

  void add_entries() {
    for (const auto& [setting, slot] : schedule_settings()) {
      const auto at = positions_.find(setting.name);
      reading_.entries.push_back(
          {.section = section_path(),
           .key = setting.name,
           .value = presentable(setting, slot(effective_), slot(written_)),
           .origin = at == positions_.end() ? "default" : reading_.origin(at->second)});
    }
  }

  const Member& section_;
  Reading& reading_;
  const std::string path_;
  Schedule effective_;
  Schedule written_;  ///< Before references were replaced.
  std::map<std::string, Position> positions_;
};

}  // namespace

std::optional<Schedule> read_schedule(const Member& section, Reading& reading) {
  return ScheduleReader(section, reading).read();
}

}  // namespace outbox::config
