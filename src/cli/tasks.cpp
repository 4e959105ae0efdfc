// outbox tasks: lists, shows, runs again and cancels the tasks of all queues, and pauses queues.
#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/count.hpp"
#include "base/json.hpp"
#include "cli/acting.hpp"
#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"
#include "cli/task_rows.hpp"
#include "cli/verbs.hpp"
#include "event/task_queue.hpp"
#include "event/time_text.hpp"

namespace outbox::cli {
namespace {

using store::ParkedListing;
using store::ParkedState;

struct TasksOptions {
  std::vector<std::string> ids;
  std::string id;                   ///< The task of show.
  std::string name;                 ///< The queue of pause and resume.
  std::string pause;                ///< The reason of pause.
  std::optional<std::string> type;  ///< The type of pause and resume.
  TaskChoice choice;
  std::optional<std::string> after;
  std::uint64_t limit{100};
  std::optional<std::string> reason;
  bool apply{false};
  bool preview{false};
  bool json{false};
};

// ---- list

std::string next_run(const ParkedListing& row) {
  return row.state == ParkedState::retrying ? event::time_text(row.next_attempt_at_us) : "-";
}

/// A line such as "runs on app-1 since 2026-..., 40 %: page 2 of 5".
std::string describe_run(const ParkedListing& row) {
  std::string text = "  runs on " + (row.worker.empty() ? "a worker that has left" : row.worker);
  if (row.begun_at_us) text += " since " + event::time_text(*row.begun_at_us);
  if (row.percent) text += ", " + std::to_string(*row.percent) + " %";
  if (!row.progress.empty()) text += ": " + row.progress;
  return text;
}

Json to_json(const ParkedListing& row) {
  const bool retrying = row.state == ParkedState::retrying;
  return {{"id", row.id.str()},
          {"queue", event::queue_of_task(row.aggregate_type)},
          {"type", row.event_type},
          {"key", or_null(row.aggregate_id)},
          {"state", to_string(find_state(row))},
          {"attempts", row.attempts},
          {"enqueued_at", event::time_text(row.created_at_us)},
          {"next_attempt_at", retrying ? Json(event::time_text(row.next_attempt_at_us)) : Json()},
          {"error", or_null(row.error)},
          {"worker", or_null(row.worker)},
          {"running_since", time_or_null(row.begun_at_us)},
          {"percent", row.percent ? Json(*row.percent) : Json()},
          {"progress", or_null(row.progress)}};
}

void print_rows(const std::vector<ParkedListing>& rows) {
  Table table({"QUEUE", "STATE", "TYPE", "KEY", "ATTEMPTS", "NEXT RUN", "ID"});
  for (const auto& row : rows) {
    table.add({event::queue_of_task(row.aggregate_type), to_string(find_state(row)), row.event_type,
               row.aggregate_id.empty() ? "-" : row.aggregate_id, std::to_string(row.attempts),
               next_run(row), row.id.str()});
    if (row.state == ParkedState::running) table.note(describe_run(row));
    if (!row.error.empty()) table.note("  error: " + row.error);
  }
  table.print();
}

int list_pending(const TasksOptions& options, const Queues& open, std::size_t limit) {
  struct Line {
    std::string queue;
    store::PendingTask task;
  };
  std::vector<Line> lines;
  const auto queues = must(open.store->task_queues());
  for (const auto& subscription : open.of(options.choice.queue)) {
    const store::PendingFilter filter{.type = options.choice.type.value_or(""),
                                      .key = options.choice.key.value_or("")};
    for (auto& task : must(queues->pending(subscription, filter, limit + 1)))
      lines.push_back({*event::queue_of_subscription(subscription.spec.name), std::move(task)});
  }
  std::sort(lines.begin(), lines.end(),
            [](const Line& a, const Line& b) { return a.task.seq < b.task.seq; });
  const bool more = lines.size() > limit;
  if (more) lines.resize(limit);
  Json tasks = Json::array();
  Table table({"QUEUE", "STATE", "TYPE", "KEY", "ENQUEUED", "ID"});
  for (const auto& [queue, task] : lines) {
    const std::string enqueued = event::time_text(task.created_at_us);
    tasks.push_back({{"id", task.id.str()},
                     {"queue", queue},
                     {"type", task.type},
                     {"key", or_null(task.key)},
                     {"state", "pending"},
                     {"enqueued_at", enqueued}});
    table.add(
        {queue, "pending", task.type, task.key.empty() ? "-" : task.key, enqueued, task.id.str()});
  }
  if (options.json) {
    print_json({{"tasks", tasks}, {"more", more}, {"next", nullptr}});
    return kOk;
  }
  lines.empty() ? print("no such tasks\n") : table.print();
  if (more) print("... there are more: --limit N shows them\n");
  return kOk;
}

int list(const TasksOptions& options, const Context& context) {
  if (options.limit == 0) throw Failure(kUsage, "--limit 0: nothing would be shown", "1 or more");
  const bool pending =
      options.choice.state && parse_state(*options.choice.state) == TaskState::pending;
  const Queues open(context.store_configuration());
  const auto limit = static_cast<std::size_t>(std::min<std::uint64_t>(options.limit, 100'000));
  TaskChoice choice = options.choice;
  choice.after = parse_page_end(options.after);
  if (pending) {
    if (choice.after)
      throw Failure(kUsage, "--after: tasks that no worker has taken yet have no pages",
                    "--limit N shows more");
    return list_pending(options, open, limit);
  }
  auto rows = read_rows(choice, open, limit + 1);
  const bool more = rows.size() > limit;
  if (more) rows.resize(limit);
  if (options.json) {
    Json tasks = Json::array();
    for (const auto& row : rows) tasks.push_back(to_json(row));
    print_json({{"tasks", tasks},
                {"more", more},
                {"next", more ? Json(page_end_text(rows.back())) : Json()}});
    return kOk;
  }
  rows.empty() ? print("no such tasks (those that only wait in the log: --state pending)\n")
               : print_rows(rows);
  if (more) print("... there are more: --after {} shows them\n", page_end_text(rows.back()));
  return kOk;
}

// ---- show

Json to_json(const FoundTask& found) {
  const auto& [event, status] = found;
  const std::set<std::string> its{
      event::subscription_of_task(event.aggregate_type),
      event::subscription_of_type(event.aggregate_type, event.event_type)};
  Json json{{"id", status.id.str()},
            {"queue", status.queue},
            {"type", status.type},
            {"key", or_null(status.key)},
            {"state", to_string(status.state)},
            {"attempts", status.attempts},
            {"enqueued_at", time_or_null(status.enqueued_at)},
            {"next_attempt_at", time_or_null(status.next_attempt_at)},
            {"ended_at", time_or_null(status.ended_at)},
            {"worker", or_null(status.worker)},
            {"running_since", time_or_null(status.running_since)},
            {"percent", status.percent ? Json(*status.percent) : Json()},
            {"progress", or_null(status.progress)},
            {"error", or_null(status.error)},
            {"waiting_for", Json()},
            {"ended_by", Json()},
            {"reason", Json()},
            {"result", status.result ? Json(*status.result) : Json()},
            {"content_type", or_null(event.content_type)},
            {"headers", try_parse_json<Json>(event.headers)},
            {"payload", event.payload}};
  for (const auto& life : event.subscriptions) {
    if (!its.contains(life.subscription)) continue;
    if (life.waiting_for) json["waiting_for"] = life.waiting_for->str();
    if (!life.ended_by.empty()) json["ended_by"] = life.ended_by;
    if (!life.reason.empty()) json["reason"] = life.reason;
  }
  return json;
}

int show(const TasksOptions& options, const Context& context) {
  (void)parse_task_id(options.id);
  const Queues open(context.store_configuration());
  const Json json = to_json(find_task(open, options.id));
  if (options.json) {
    print_json(json);
    return kOk;
  }
  for (const auto& [name, value] : json.items()) {
    if (value.is_null()) continue;
    const std::string text = value.is_string() ? value.get<std::string>() : write_json(value);
    print("{:16}{}\n", name + ":", plain(text));
  }
  return kOk;
}

// ---- retry and cancel

/// Tasks have to be chosen by ids or by a filter, and not by both.
void require_choice(const TasksOptions& options, const std::string& verb) {
  if (options.ids.empty() && !options.choice.any())
    throw Failure(kUsage, verb + ": which tasks?", "ids, or --queue, --type, --state, --key");
  if (!options.ids.empty() && options.choice.any())
    throw Failure(kUsage, verb + ": ids name the tasks", "leave the filters out");
  if (options.choice.state && parse_state(*options.choice.state) == TaskState::pending)
    throw Failure(kUsage, "--state pending: tasks that are in the log only cannot be changed",
                  "scheduled|running|retrying|waiting|dead");
}

store::PersonDecision decision(const TasksOptions& options, const char* verb) {
  return acting(verb,
                {{"tasks", options.ids},
                 {"queue", given(options.choice.queue)},
                 {"type", given(options.choice.type)},
                 {"state", given(options.choice.state)},
                 {"key", given(options.choice.key)}},
                options.reason.value_or(""));
}

using Rows = std::vector<ParkedListing>;

/// Calls `take` with the tasks that are named, or with all that fit.
template <class Take>
void each_chosen(const TasksOptions& options, const Queues& open, Take take) {
  if (options.ids.empty()) return for_each_page(options.choice, open, take);
  take(rows_with_ids(options.ids, open));
}

/// Prints what a command would do with --apply. `fits` says whether it would do that to a row.
template <class Fits>
void would(const char* what, const TasksOptions& options, const Queues& open, Fits fits,
           const char* apply) {
  constexpr std::size_t kShown = 100;
  std::size_t all = 0;
  each_chosen(options, open, [&](const Rows& rows) {
    for (const auto& row : rows) {
      if (!fits(row) || ++all > kShown) continue;
      print("would {} {} {} {} ({})\n", what, event::queue_of_task(row.aggregate_type),
            plain(row.event_type), row.id.str(), to_string(find_state(row)));
    }
  });
  if (all > kShown) print("... and {} more\n", all - kShown);
  print("{}; nothing was changed ({})\n", count("task", all), apply);
}

/// Refuses named tasks that cannot be run again: one that runs goes on, and one that waits is
/// behind another one.
void check_retried(const std::vector<ParkedListing>& rows) {
  for (const auto& row : rows) {
    if (row.state == ParkedState::running)
      throw Failure(kError, row.id.str() + ": it runs now", "outbox tasks cancel ends it");
    if (row.state == ParkedState::waiting)
      throw Failure(kError, row.id.str() + ": it waits behind an earlier task of its key",
                    "outbox tasks list --key " + row.aggregate_id);
  }
}

int retry(const TasksOptions& options, const Context& context) {
  require_choice(options, "retry");
  if (options.choice.state) {
    const TaskState state = parse_state(*options.choice.state);
    if (state == TaskState::running || state == TaskState::waiting)
      throw Failure(kUsage, "--state " + *options.choice.state + ": there is nothing to run again",
                    "dead|retrying|scheduled");
  }
  const Queues open(context.store_configuration(), decision(options, "tasks retry"));
  const auto can_run = [](const ParkedListing& row) {
    return row.state != ParkedState::running && row.state != ParkedState::waiting;
  };
  if (options.preview || (options.ids.empty() && !options.apply)) {
    would("run again", options, open, can_run, "--apply runs them again");
    return kOk;
  }
  std::size_t overtaken = 0;
  ChangeProgress progress;
  each_chosen(options, open, [&](const Rows& chosen) {
    if (!options.ids.empty()) check_retried(chosen);
    Rows rows;
    std::copy_if(chosen.begin(), chosen.end(), std::back_inserter(rows), can_run);
    overtaken += count_overtaken(rows);
    progress.changed(
        change_each(rows, [&](std::int32_t subscription, const std::vector<std::int64_t>& seqs) {
          return open.parked->retry(subscription, seqs, false);
        }));
  });
  print("{} again\n", count("task", progress.all(), "runs", "run"));
  if (overtaken > 0)
    print("{} dead: later tasks of the same key may have run before\n",
          count("task", overtaken, "was", "were"));
  return kOk;
}

int cancel(const TasksOptions& options, const Context& context) {
  require_choice(options, "cancel");
  const bool acts = !options.preview && (options.apply || !options.ids.empty());
  if (acts && !options.reason)
    throw Failure(kUsage, "cancel: --reason is missing", "--reason \"the order was withdrawn\"");
  const Queues open(context.store_configuration(), decision(options, "tasks cancel"));
  if (!acts) {
    const auto all = [](const ParkedListing& /*row*/) { return true; };
    would("cancel", options, open, all, "--apply --reason TEXT cancels them");
    return kOk;
  }
  std::size_t running = 0;
  ChangeProgress progress;
  each_chosen(options, open, [&](const Rows& rows) {
    running +=
        static_cast<std::size_t>(std::count_if(rows.begin(), rows.end(), [](const auto& row) {
          return row.state == ParkedState::running;
        }));
    progress.changed(
        change_each(rows, [&](std::int32_t subscription, const std::vector<std::int64_t>& seqs) {
          return open.parked->discard(subscription, seqs, this_user(), *options.reason);
        }));
  });
  print("{} cancelled\n", count("task", progress.all()));
  if (running > 0)
    print(
        "{} now: the handler is told to stop with the next heartbeat of its worker, and the task ends "
        "when it returns; until then the next task of the key waits\n",
        count("task", running, "runs", "run"));
  return kOk;
}

// ---- pause and resume

store::PersonDecision queue_decision(const TasksOptions& options, const char* verb) {
  return acting(verb, {{"queue", options.name}, {"type", given(options.type)}}, options.pause);
}

/// The subscriptions that a type of a queue has for itself.
std::vector<std::string> subscriptions_of_type(const TasksOptions& options, const Queues& open) {
  std::vector<std::string> names;
  for (const auto& row : open.of(options.name)) {
    if (event::is_of_type(row.spec) && row.spec.event_types.front() == *options.type)
      names.push_back(row.spec.name);
  }
  return names;
}

/// Says which of the subscriptions a pause left stopped.
void print_stopped(const std::vector<std::string>& names, const Queues& open) {
  for (const auto& row : must(open.catalog->subscriptions())) {
    if (row.state != store::SubscriptionState::stopped) continue;
    if (std::find(names.begin(), names.end(), row.spec.name) == names.end()) continue;
    print("{} stays stopped: {}\n", row.spec.name, plain(row.reason));
  }
}

/// Pauses one type. Its tasks are then read apart from those of the queue.
int pause_type(const TasksOptions& options, const Queues& open) {
  if (options.type->find_first_of("*?") != std::string::npos)
    throw Failure(kUsage, "--type " + *options.type + ": is no name of one type",
                  "without * and ?; or pause the queue");
  std::vector<std::string> paused;
  for (const auto& row : open.of(options.name)) {
    if (event::is_of_type(row.spec)) continue;
    const SubscriptionSpec spec = event::spec_of_type(row.spec, *options.type);
    (void)must(open.catalog->apply(spec));
    must(open.catalog->pause(spec.name, options.pause));
    paused.push_back(spec.name);
  }
  print("type {} of queue {} is paused: its tasks wait; what runs goes on\n", *options.type,
        options.name);
  print_stopped(paused, open);
  return kOk;
}

int pause(const TasksOptions& options, const Context& context) {
  const Queues open(context.store_configuration(), queue_decision(options, "tasks pause"));
  if (options.type) return pause_type(options, open);
  std::vector<std::string> paused;
  for (const auto& row : open.of(options.name)) {
    must(open.catalog->pause(row.spec.name, options.pause));
    paused.push_back(row.spec.name);
  }
  print("queue {} is paused: its tasks wait; what runs goes on\n", options.name);
  print_stopped(paused, open);
  return kOk;
}

int resume(const TasksOptions& options, const Context& context) {
  const Queues open(context.store_configuration(), queue_decision(options, "tasks resume"));
  if (options.type) {
    const auto names = subscriptions_of_type(options, open);
    if (names.empty())
      throw Failure(kError,
                    "type " + *options.type + " of queue " + options.name + " is not paused");
    for (const std::string& name : names) must(open.catalog->resume(name));
    print("type {} of queue {} is resumed\n", *options.type, options.name);
    return kOk;
  }
  for (const auto& row : open.of(options.name)) must(open.catalog->resume(row.spec.name));
  print("queue {} is resumed\n", options.name);
  return kOk;
}

// ---- options

void add_filter(CLI::App& verb, const std::shared_ptr<TasksOptions>& options, const char* states) {
  add_option(verb, "--queue", &options->choice.queue, "QUEUE", "Of this queue");
  add_option(verb, "--type", &options->choice.type, "TYPE", "Of this type");
  add_option(verb, "--state", &options->choice.state, states, "In this state");
  add_option(verb, "--key", &options->choice.key, "KEY", "With this key");
}

void add_looking(CLI::App& verb, Context& context, const std::shared_ptr<TasksOptions>& options) {
  CLI::App& listing = add_verb(verb, "list", "Show tasks that run, wait for a run, or are dead",
                               [options, &context] { return list(*options, context); });
  add_filter(listing, options, "pending|scheduled|running|retrying|waiting|dead");
  add_option(listing, "--after", &options->after, "PLACE",
             "After the tasks that were shown, which end with the place of the next ones");
  add_option(listing, "--limit", &options->limit, "N", "Show at most this many");
  add_option(listing, "--json", &options->json, {}, "As JSON");
  add_footer(
      listing,
      "Tasks that no worker has taken yet are in the log only: --state pending shows the oldest of them.");
  add_example(listing, "outbox tasks list --queue reports --state dead");
  CLI::App& showing = add_verb(verb, "show", "Show a task, with payload, headers and result",
                               [options, &context] { return show(*options, context); });
  add_argument(showing, "ID", &options->id, "Its id");
  add_option(showing, "--json", &options->json, {}, "As JSON");
  add_example(showing, "outbox tasks show 0198c5b2-6d1f-7c3a-9d5e-0a1b2c3d4e5f");
}

void add_changing(CLI::App& verb, Context& context, const std::shared_ptr<TasksOptions>& options) {
  CLI::App& retrying =
      add_verb(verb, "retry", "Run tasks again now that are dead or wait for a run",
               [options, &context] { return retry(*options, context); });
  add_argument(retrying, "ID ...", &options->ids, "Ids");
  add_filter(retrying, options, "dead, retrying or scheduled");
  add_option(retrying, "--apply", &options->apply, {},
             "With a filter: do it; without it only shows which");
  add_option(retrying, "--preview", &options->preview, {},
             "Only show which, also if they are named");
  add_example(retrying, "outbox tasks retry --queue reports --state dead --apply");
  CLI::App& cancelling =
      add_verb(verb, "cancel", "Cancel tasks; a handler that runs is told to stop",
               [options, &context] { return cancel(*options, context); });
  add_argument(cancelling, "ID ...", &options->ids, "Ids");
  add_filter(cancelling, options, "scheduled, running, retrying, waiting or dead");
  add_option(cancelling, "--apply", &options->apply, {},
             "With a filter: do it; without it only shows which");
  add_option(cancelling, "--preview", &options->preview, {},
             "Only show which, also if they are named");
  add_option(cancelling, "--reason", &options->reason, "TEXT", "Kept in the table parked_end");
  add_example(cancelling,
              "outbox tasks cancel 0198c5b2-6d1f-7c3a-9d5e-0a1b2c3d4e5f --reason \"withdrawn\"");
  CLI::App& pausing =
      add_verb(verb, "pause", "Pause a queue, or one type; its tasks wait, and what runs goes on",
               [options, &context] { return pause(*options, context); });
  add_argument(pausing, "QUEUE", &options->name, "Which one");
  add_option(pausing, "--type", &options->type, "TYPE", "Only tasks of this type");
  add_option(pausing, "--reason", &options->pause, "TEXT", "Shown in `outbox status`");
  add_example(pausing, "outbox tasks pause reports --reason \"the printer is being repaired\"");
  add_example(pausing, "outbox tasks pause reports --type report.print");
  CLI::App& resuming =
      add_verb(verb, "resume", "Continue a queue that is paused, with all its types, or one type",
               [options, &context] { return resume(*options, context); });
  add_argument(resuming, "QUEUE", &options->name, "Which one");
  add_option(resuming, "--type", &options->type, "TYPE", "Only tasks of this type");
  add_example(resuming, "outbox tasks resume reports");
}

}  // namespace

void add_tasks(CLI::App& root, Context& context) {
  auto options = std::make_shared<TasksOptions>();
  CLI::App& verb = add_verb(root, "tasks", "List tasks, run them again, cancel them; pause queues");
  add_example(verb, "outbox tasks list");
  add_looking(verb, context, options);
  add_changing(verb, context, options);
  add_task_schedules(verb, context);
}

}  // namespace outbox::cli
