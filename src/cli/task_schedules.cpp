// outbox tasks schedule: lists, pauses, resumes and removes the schedules of tasks that recur.
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/acting.hpp"
#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "event/time_text.hpp"
#include "schedule/schedule.hpp"

namespace outbox::cli {
namespace {

struct ScheduleOptions {
  std::string name;
  bool apply{false};
  bool json{false};
};

struct OpenSchedules {
  explicit OpenSchedules(const config::Loaded& loaded, Decided decided = {})
      : store(Context::checked_store(loaded, std::move(decided))),
        schedules(must(store->schedules())),
        rows(must(schedules->list())) {}

  /// Refuses an unknown name: a typing error must not look like success.
  [[nodiscard]] const store::ScheduleRow& find(const std::string& name) const {
    std::vector<std::string_view> known;
    for (const auto& row : rows) {
      if (row.schedule.name == name) return row;
      known.emplace_back(row.schedule.name);
    }
    throw Failure(kError, "unknown schedule: " + name,
                  did_you_mean(name, known, "`outbox tasks schedule` shows them"));
  }

  std::unique_ptr<store::Store> store;
  std::unique_ptr<store::Schedules> schedules;
  std::vector<store::ScheduleRow> rows;
};

/// A schedule that is paused has no next tick.
std::optional<std::int64_t> find_next(const store::ScheduleRow& row) {
  return row.paused ? std::nullopt : std::optional(row.next_at_us);
}

std::string shown(std::optional<std::int64_t> time_us) {
  return time_us ? event::time_text(*time_us) : "-";
}

std::string describe_interval(const Schedule& schedule) {
  return schedule.every.count() == 0 ? "" : format_duration(schedule.every);
}

Json to_json(const store::ScheduleRow& row) {
  const Schedule& schedule = row.schedule;
  return {{"name", schedule.name},
          {"queue", schedule.queue},
          {"type", schedule.type},
          {"key", or_null(schedule.key)},
          {"cron", or_null(schedule.cron)},
          {"every", or_null(describe_interval(schedule))},
          {"time_zone", schedule.cron.empty() ? Json() : Json(schedule.time_zone)},
          {"missed", to_word(schedule.missed)},
          {"paused", row.paused},
          {"next_at", time_or_null(find_next(row))},
          {"last_at", time_or_null(row.last_at_us)},
          {"last_task", row.last_task ? Json(row.last_task->str()) : Json()}};
}

int list(const ScheduleOptions& options, const Context& context) {
  const OpenSchedules open(context.store_configuration());
  if (options.json) {
    Json all = Json::array();
    for (const auto& row : open.rows) all.push_back(to_json(row));
    print_json({{"schedules", all}});
    return kOk;
  }
  if (open.rows.empty()) {
    print("no schedules\n");
    return kOk;
  }
  Table table({"NAME", "QUEUE", "TYPE", "WHEN", "ZONE", "NEXT", "LAST", "PAUSED"});
  for (const auto& row : open.rows) {
    const Schedule& schedule = row.schedule;
    const bool cron = !schedule.cron.empty();
    table.add({schedule.name, schedule.queue, schedule.type,
               cron ? schedule.cron : "every " + describe_interval(schedule),
               cron ? schedule.time_zone : "-", shown(find_next(row)), shown(row.last_at_us),
               row.paused ? "yes" : "no"});
  }
  table.print();
  return kOk;
}

store::PersonDecision decision(const ScheduleOptions& options, const char* verb) {
  return acting(verb, {{"schedule", options.name}});
}

int pause(const ScheduleOptions& options, const Context& context) {
  const OpenSchedules open(context.store_configuration(),
                           decision(options, "tasks schedule pause"));
  const auto& row = open.find(options.name);
  if (row.paused) {
    print("{} is paused already\n", options.name);
    return kOk;
  }
  must(open.schedules->pause(options.name));
  print("{} paused: it has no ticks until it is resumed\n", options.name);
  return kOk;
}

int resume(const ScheduleOptions& options, const Context& context) {
  const OpenSchedules open(context.store_configuration(),
                           decision(options, "tasks schedule resume"));
  const auto& row = open.find(options.name);
  if (!row.paused) {
    print("{} is not paused, its next tick is at {}\n", options.name, shown(row.next_at_us));
    return kOk;
  }
  const auto ticks = schedule::Ticks::of(row.schedule);
  const auto next = ticks ? ticks->next_us(must(open.schedules->now_us())) : std::nullopt;
  if (!next)
    throw Failure(kError, options.name + " cannot be resumed: " +
                              (ticks ? "it never has a tick" : ticks.error().text()));
  if (!must(open.schedules->resume(row, *next)))
    throw Failure(kNotNow, options.name + " was changed meanwhile", "run the command again");
  print("{} resumed, its next tick is at {}\n", options.name, shown(next));
  return kOk;
}

int remove(const ScheduleOptions& options, const Context& context) {
  const OpenSchedules open(context.store_configuration(),
                           decision(options, "tasks schedule remove"));
  const auto& schedule = open.find(options.name).schedule;
  const std::string what =
      fmt::format("{} (queue {}, type {})", schedule.name, schedule.queue, plain(schedule.type));
  if (!options.apply) {
    print("would remove {}; nothing was changed (--apply removes it)\n", what);
  } else {
    (void)must(open.schedules->remove(options.name));
    print("removed {}\n", what);
  }
  print("a worker whose configuration has it writes it again when it starts\n");
  return kOk;
}

}  // namespace

void add_task_schedules(CLI::App& tasks, Context& context) {
  auto options = std::make_shared<ScheduleOptions>();
  const auto show = [options, &context] { return list(*options, context); };
  CLI::App& verb =
      add_verb(tasks, "schedule", "List, pause, resume or remove schedules of tasks", show);
  add_option(verb, "--json", &options->json, {}, "As JSON");
  add_example(verb, "outbox tasks schedule");
  CLI::App& listing = add_verb(verb, "list", "Show the schedules of the store", show);
  add_option(listing, "--json", &options->json, {}, "As JSON");
  add_example(listing, "outbox tasks schedule list --json");
  CLI::App& pausing = add_verb(verb, "pause", "Pause one: it has no ticks, and misses none",
                               [options, &context] { return pause(*options, context); });
  add_argument(pausing, "NAME", &options->name, "Which one");
  add_example(pausing, "outbox tasks schedule pause monthly-report");
  CLI::App& resuming = add_verb(verb, "resume", "Continue one with its next tick from now on",
                                [options, &context] { return resume(*options, context); });
  add_argument(resuming, "NAME", &options->name, "Which one");
  add_example(resuming, "outbox tasks schedule resume monthly-report");
  CLI::App& removing = add_verb(verb, "remove", "Remove one that no configuration has any more",
                                [options, &context] { return remove(*options, context); });
  add_argument(removing, "NAME", &options->name, "Which one");
  add_option(removing, "--apply", &options->apply, {}, "Do it; without it only shows which");
  add_example(removing, "outbox tasks schedule remove monthly-report --apply");
}

}  // namespace outbox::cli
