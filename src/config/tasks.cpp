#include "config/tasks.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <outbox/task.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "config/belonging.hpp"
#include "config/section.hpp"
#include "config/subscriptions.hpp"
#include "sink/registry.hpp"

namespace outbox::config {
namespace {

constexpr std::string_view kHandler = "handler";
constexpr std::string_view kCommand = "command";
constexpr std::string_view kExec = "exec";
constexpr std::string_view kHttp = "http";
/// The handlers that are sinks.
constexpr std::array<std::string_view, 2> kSinks{kHttp, "smtp"};

bool can_be_run(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

class TaskReader {
 public:
  TaskReader(const Member& section, bool resolve, Reading& reading)
      : section_(section),
        resolve_(resolve),
        reading_(reading),
        path_("task." + quote(section.key)),
        task_(path_, path_, section.at, resolve, reading) {
    effective_.type = task_.written.type = section.key;
  }

  std::optional<TaskSpec> read() {
    const std::size_t before = reading_.problems.size();
    auto* const table = reading_.table(section_, path_);
    if (table == nullptr) return std::nullopt;
    const std::vector<Member> all = members(*table);
    // The handler is read first, because the other settings depend on it.
    for (const Member& member : all) {
      if (member.key == kHandler) task_.read(*find_row(kHandler), member);
    }
    for (const Member& member : all) {
      if (member.key != kHandler) read_member(member);
    }
    if (reading_.problems.size() == before) check();
    if (reading_.problems.size() == before) add_entries();
    if (effective_.handler != kExec) read_delivery();
    if (reading_.problems.size() != before) return std::nullopt;
    return std::move(effective_);
  }

 private:
  static const SettingRow<TaskSpec>* find_row(std::string_view name) {
    for (const auto& row : task_settings()) {
      if (row.setting.name == name) return &row;
    }
    return nullptr;
  }

  /// The handlers that have this setting, if not all have it; empty if none has.
  static std::vector<std::string_view> handlers_with(std::string_view name) {
    if (name == kCommand) return {kExec};
    for (const std::string_view handler : kSinks) {
      if (name == handler) return {handler};
    }
    const auto shared = task_message_settings();
    const bool of_sinks = std::any_of(shared.begin(), shared.end(),
                                      [&](const auto& row) { return row.setting.name == name; });
    return of_sinks ? std::vector<std::string_view>(kSinks.begin(), kSinks.end())
                    : std::vector<std::string_view>();
  }

  void read_member(const Member& member) {
    const auto* const row = find_row(member.key);
    const auto handlers = handlers_with(member.key);
    if (row == nullptr && handlers.empty()) return complain_about_unknown(member);
    const bool fits = handlers.empty() || std::find(handlers.begin(), handlers.end(),
                                                    effective_.handler) != handlers.end();
    if (!fits) return complain_about_other(member, handlers);
    row != nullptr ? task_.read(*row, member) : of_delivery_.push_back(member);
  }

  void complain_about_other(const Member& member, const std::vector<std::string_view>& handlers) {
    std::string names;
    for (const std::string_view handler : handlers)
      names.append(names.empty() ? "" : " and ").append(handler);
    const std::string path = path_ + "." + member.key;
    reading_.complain(path + ": belongs to handler " + names +
                          ", and the handler of this task is " + effective_.handler,
                      path, member.at, "remove it, or write handler = " + quote(handlers.front()));
  }

  void complain_about_unknown(const Member& member) {
    std::vector<std::string_view> with;
    for (const std::string_view handler : kSinks) {
      const auto* const kind = sink::find_kind(handler);
      if (kind != nullptr && has_setting(*kind, member.key)) with.push_back(handler);
    }
    if (std::find(with.begin(), with.end(), effective_.handler) != with.end()) {
      const std::string path = path_ + "." + member.key;
      return reading_.complain(path + ": is a setting of the handler, not of the task", path,
                               member.at,
                               "write it below [" + path_ + "." + effective_.handler + "]");
    }
    if (!with.empty()) return complain_about_other(member, with);
    const auto shared = task_message_settings();
    std::vector<std::string_view> known(kSinks.begin(), kSinks.end());
    for (const auto& row : task_settings()) known.emplace_back(row.setting.name);
    for (const auto& row : shared) known.emplace_back(row.setting.name);
    task_.complain_about_unknown(member, known);
  }

  void check() {
    const Task task{.queue = effective_.queue, .type = effective_.type, .payload = "{}"};
    if (Status status = validate(task); !status)
      reading_.complain(path_, task_.find_position("queue"), status.error());
    check_limits();
    if (effective_.handler == kExec) check_command();
  }

  void check_limits() {
    const bool limited = effective_.max_running > 0 || effective_.rate.count > 0;
    if (limited && effective_.type.find_first_of("*?") != std::string::npos) {
      reading_.complain(path_ + ": a type with max_running or rate has * or ?", path_, section_.at,
                        "give the type another name");
    }
  }

  void check_command() {
    if (effective_.command.empty() || effective_.command.front().empty()) {
      return reading_.complain(
          path_ + ".command: is missing", path_ + ".command", task_.find_position("command"),
          "the program that does these tasks: command = [\"/usr/local/bin/make-report\"]; or handler = \"http\" or \"smtp\"");
    }
    std::string& program = effective_.command.front();
    if (program.find('/') != std::string::npos) program = reading_.anchored(program);
    if (!reading_.thorough) return;
    if (const auto found = find_program(program); !found)
      reading_.complain(path_ + ".command", task_.find_position("command"), found.error());
  }

  void read_delivery() {
    const std::string& sink = effective_.handler;
    if (const auto missing = sink::not_in_this_build(sink))
      return reading_.complain(path_ + "." + std::string(kHandler),
                               task_.find_position(std::string(kHandler)), *missing);
    SinkPart part{.path = path_,
                  .section = path_,
                  .at = section_.at,
                  .members = of_delivery_,
                  .rows = task_message_settings(),
                  // As far as the sink knows, what is refused is dead.
                  .preset = {.name = "task", .sink = sink, .on_reject = OnReject::stop},
                  .settled = settled_by_worker(sink),
                  .owner = "task"};
    for (const auto& row : task_settings()) part.others.push_back(row.setting.name);
    for (const auto& [name, why] : part.settled) part.preset.sink_settings[name] = "1";
    if (sink == kHttp) part.preset.sink_settings["idempotency_key"] = "true";
    if (auto read = read_sink_part(std::move(part), resolve_, reading_))
      effective_.delivery = std::move(*read);
  }

  void add_entries() {
    for (const auto& row : task_settings()) {
      if (row.setting.name != kCommand || effective_.handler == kExec) task_.add_entry(row);
    }
  }

  const Member& section_;
  const bool resolve_;
  Reading& reading_;
  const std::string path_;
  Section<TaskSpec> task_;
  TaskSpec& effective_ = task_.effective;
  std::vector<Member> of_delivery_;
};

}  // namespace

std::optional<TaskSpec> read_task(const Member& section, bool resolve, Reading& reading) {
  return TaskReader(section, resolve, reading).read();
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
