#include "config/tasks.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <outbox/task.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace outbox::config {
namespace {

bool can_be_run(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

class TaskReader {
 public:
  TaskReader(const Member& section, Reading& reading)
      : section_(section), reading_(reading), path_("task." + quote(section.key)) {
    effective_.type = written_.type = section.key;
  }

  std::optional<TaskSpec> read() {
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
    for (const auto& row : task_settings()) {
      if (row.setting.name == member.key) return read_setting(row, member);
      known.emplace_back(row.setting.name);
    }
    const std::string path = path_ + "." + member.key;
    reading_.complain("unknown setting " + path, path, member.at, did_you_mean(member.key, known));
  }

  void read_setting(const SettingRow<TaskSpec>& row, const Member& member) {
    const std::string path = path_ + "." + member.key;
    positions_[member.key] = position(*member.value);
    if (auto status = assign(row.setting, row.slot(written_), *member.value); !status)
      return reading_.complain(path, position(*member.value), status.error());
    if (!reading_.take_references(*member.value, path, true)) return;
    (void)assign(row.setting, row.slot(effective_), *member.value);
  }

  void check() {
    const Task task{.queue = effective_.queue, .type = effective_.type, .payload = "{}"};
    if (Status status = validate(task); !status)
      reading_.complain(path_, position_of("queue"), status.error());
    if (effective_.command.empty() || effective_.command.front().empty()) {
      return reading_.complain(
          path_ + ".command: is missing", path_ + ".command", position_of("command"),
          "the program that does these tasks: command = [\"/usr/local/bin/make-report\"]");
    }
    std::string& program = effective_.command.front();
    if (program.find('/') != std::string::npos) program = reading_.anchored(program);
    if (!reading_.thorough) return;
    if (const auto found = find_program(program); !found)
      reading_.complain(path_ + ".command", position_of("command"), found.error());
  }

  [[nodiscard]] Position position_of(const std::string& setting) const {
    const auto found = positions_.find(setting);
    return found == positions_.end() ? section_.at : found->second;
  }

  void add_entries() {
    for (const auto& [setting, slot] : task_settings()) {
      const auto at = positions_.find(setting.name);
      reading_.entries.push_back(
          {.section = path_,
           .key = setting.name,
           .value = presentable(setting, slot(effective_), slot(written_)),
           .origin = at == positions_.end() ? "default" : reading_.origin(at->second)});
    }
  }

  const Member& section_;
  Reading& reading_;
  const std::string path_;
  TaskSpec effective_;
  TaskSpec written_;  ///< Before references were replaced.
  std::map<std::string, Position> positions_;
};

}  // namespace

std::optional<TaskSpec> read_task(const Member& section, Reading& reading) {
  return TaskReader(section, reading).read();
}

Result<std::string> find_program(const std::string& name) {
  const auto none = [&](const std::string& where) {
    return fail(Errc::not_found, in_quotes(name) + " is no program that can be run" + where,
                "check that the file is there, and that the user of the worker may execute it");
  };
  if (name.find('/') != std::string::npos)
    return can_be_run(name) ? Result<std::string>(name) : Result<std::string>(none(""));
  const char* const variable = std::getenv("PATH");
  std::string_view path = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  while (!path.empty()) {
    const std::size_t end = std::min(path.find(':'), path.size());
    const std::string candidate = std::string(path.substr(0, end)).append("/").append(name);
    if (end > 0 && can_be_run(candidate)) return candidate;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return none(" in PATH");
}

}  // namespace outbox::config
