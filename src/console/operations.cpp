#include "console/operations.hpp"

#include <utility>

namespace outbox::console {
namespace {

using Kind = Parameter::Kind;
using Parameters = std::vector<Parameter>;

Parameters with(Parameters parameters, const Parameters& more) {
  parameters.insert(parameters.end(), more.begin(), more.end());
  return parameters;
}

const Parameters kNone{};
const Parameter kLimit{"limit", "--limit", Kind::number, "Answer with at most this many"};
const Parameter kApply{"apply", "--apply", Kind::flag,
                       "Do it; without it only say what would be done"};
const Parameter kReason{"reason", "--reason", Kind::text, "Why"};

const Parameters kParkedFilter{
    {"subscription", "--subscription", Kind::text, "Of this subscription"},
    {"state", "--state", Kind::text, "retrying, waiting, dead or running"},
    {"type", "--type", Kind::text, "With this aggregate_type"},
    {"key", "--key", Kind::text, "With this aggregate_id"},
    {"error", "--error", Kind::text, "Whose error contains this"},
};
const Parameter kNamedEvents{"events", "", Kind::texts, "Ids or seqs"};

const Parameters kTaskFilter{
    {"queue", "--queue", Kind::text, "Of this queue"},
    {"type", "--type", Kind::text, "Of this type"},
    {"state", "--state", Kind::text, "In this state"},
    {"key", "--key", Kind::text, "With this key"},
};
const Parameter kIds{"ids", "", Kind::texts, "Ids"};

const Parameters kReplayChoice{
    {"from_seq", "--from-seq", Kind::number, "From this event on"},
    {"until_seq", "--until-seq", Kind::number, "Up to this event"},
    {"from_time", "--from-time", Kind::text, "Created at or after it: RFC 3339, or 15m ago"},
    {"until_time", "--until-time", Kind::text, "Created before it"},
    {"id", "--id", Kind::texts, "The events with these ids"},
    {"type", "--type", Kind::texts, "With these event_types"},
    {"aggregate_type", "--aggregate-type", Kind::texts, "With these aggregate_types"},
    {"header", "--header", Kind::texts, "With these headers, each NAME=VALUE"},
    {"key", "--key", Kind::text, "With this aggregate_type and aggregate_id, TYPE/ID"},
};

std::vector<Operation> looks() {
  const Parameters choice{{"id", "--id", Kind::text, "The event with this id"},
                          {"key", "--key", Kind::text, "TYPE/ID"},
                          {"type", "--type", Kind::text, "With this event_type"},
                          {"since", "--since", Kind::text, "Created at or after it"},
                          {"until", "--until", Kind::text, "Created before it"},
                          kLimit};
  return {
      {.method = "GET",
       .path = "/status",
       .words = {"status", "--json"},
       .document = "status",
       .help = "What every subscription, relay, queue and worker is doing"},
      {.method = "GET",
       .path = "/doctor",
       .words = {"doctor", "--json"},
       .document = "doctor",
       .help = "What is wrong, what it means, and what mends it"},
      {.method = "GET",
       .path = "/subscriptions",
       .words = {"subscription", "list", "--json"},
       .document = "subscription-list",
       .help = "The subscriptions of the store"},
      {.method = "GET",
       .path = "/events",
       .words = {"events", "--json"},
       .parameters = choice,
       .document = "events",
       .help = "Events, and what became of them in every subscription"},
      {.method = "GET",
       .path = "/events/{id}",
       .words = {"events", "--json"},
       .segment_option = "--id",
       .document = "events",
       .help = "One event"},
      {.method = "GET",
       .path = "/events/{id}/payload",
       .words = {"events", "--json", "--payload"},
       .segment_option = "--id",
       .role = Role::operator_,
       .document = "events",
       .help = "One event with its payload and headers"},
      {.method = "GET",
       .path = "/parked",
       .words = {"parked", "list", "--json"},
       .parameters = with(kParkedFilter, {kLimit}),
       .document = "parked-list",
       .help = "Parked events"},
      {.method = "GET",
       .path = "/parked/{event}",
       .words = {"parked", "show", "--json"},
       .parameters = {{"subscription", "--subscription", Kind::text, "Of this subscription"}},
       .role = Role::operator_,
       .document = "parked-show",
       .help = "A parked event with its payload and headers"},
      {.method = "GET",
       .path = "/replays",
       .words = {"replay", "--list", "--json"},
       .parameters = {kLimit},
       .document = "replay",
       .help = "Replays, the newest first"},
      {.method = "GET",
       .path = "/replays/{id}",
       .words = {"replay", "--json"},
       .segment_option = "--show",
       .document = "replay",
       .help = "A replay and what it skipped"},
      {.method = "GET",
       .path = "/tasks",
       .words = {"tasks", "list", "--json"},
       .parameters = with(kTaskFilter, {kLimit}),
       .document = "tasks-list",
       .help = "Tasks that run, wait for a run, or are dead"},
      {.method = "GET",
       .path = "/tasks/{id}",
       .words = {"tasks", "show", "--json"},
       .role = Role::operator_,
       .document = "tasks-show",
       .help = "A task with its payload, headers and result"},
      {.method = "GET",
       .path = "/schedules",
       .words = {"tasks", "schedule", "list", "--json"},
       .document = "tasks-schedule-list",
       .help = "The schedules of tasks"},
  };
}

std::vector<Operation> changes() {
  const auto change = [](std::string_view path, std::vector<std::string_view> words,
                         Parameters parameters, std::string_view help,
                         std::string_view segment_option = {}) {
    return Operation{.method = "POST",
                     .path = path,
                     .words = std::move(words),
                     .segment_option = segment_option,
                     .parameters = std::move(parameters),
                     .role = Role::operator_,
                     .help = help};
  };
  return {
      change("/subscriptions/{name}/pause", {"subscription", "pause"}, {kReason},
             "Pause a subscription: its events wait"),
      change("/subscriptions/{name}/resume", {"subscription", "resume"}, kNone,
             "Continue a subscription that is paused or stopped"),
      change("/parked/retry", {"parked", "retry"},
             with(kParkedFilter, {kNamedEvents,
                                  kApply,
                                  {"keep_attempts", "--keep-attempts", Kind::flag,
                                   "Do not count the attempts from 0 again"}}),
             "Send parked events again"),
      change("/parked/discard", {"parked", "discard"},
             with(kParkedFilter, {kNamedEvents, kApply, kReason}),
             "Give parked events up: they are never delivered"),
      change("/parked/{event}/edit", {"parked", "edit"},
             {{"subscription", "--subscription", Kind::text, "Of this subscription"},
              {"payload", "--payload-text", Kind::text, "The new body"},
              {"event_type", "--event-type", Kind::text, "The new event_type"},
              {"content_type", "--content-type", Kind::text, "The new media type of the payload"},
              {"headers", "--header", Kind::texts, "Set these headers, each NAME=VALUE"},
              {"without_headers", "--without-header", Kind::texts, "Remove these headers"},
              kApply,
              kReason},
             "Send a corrected copy in place of a parked event"),
      change("/subscriptions/{name}/replay", {"replay", "--no-wait"}, with(kReplayChoice, {kApply}),
             "Send events of a subscription again, or say how many"),
      change("/replays/{id}/stop", {"replay"}, kNone, "Stop a replay; live delivery goes on",
             "--stop"),
      change("/replays/{id}/resume", {"replay", "--no-wait"}, kNone,
             "Go on with a replay that was stopped", "--resume"),
      change("/tasks/retry", {"tasks", "retry"}, with(kTaskFilter, {kIds, kApply}),
             "Run tasks again now that are dead or wait for a run"),
      change("/tasks/cancel", {"tasks", "cancel"}, with(kTaskFilter, {kIds, kApply, kReason}),
             "Cancel tasks; a handler that runs is told to stop"),
      change("/queues/{queue}/pause", {"tasks", "pause"},
             {{"type", "--type", Kind::text, "Only tasks of this type"}, kReason},
             "Pause a queue, or one type: its tasks wait, and what runs goes on"),
      change("/queues/{queue}/resume", {"tasks", "resume"},
             {{"type", "--type", Kind::text, "Only tasks of this type"}},
             "Continue a queue that is paused, with all its types, or one type"),
      change("/schedules/{name}/pause", {"tasks", "schedule", "pause"}, kNone,
             "Pause a schedule: it has no ticks, and misses none"),
      change("/schedules/{name}/resume", {"tasks", "schedule", "resume"}, kNone,
             "Continue a schedule with its next tick from now on"),
      change("/schedules/{name}/remove", {"tasks", "schedule", "remove"}, {kApply},
             "Remove a schedule that no configuration has any more"),
      change("/verify/acknowledge", {"verify", "--acknowledge"},
             {{"subscription", "--subscription", Kind::text, "Only this subscription"}},
             "Say that a person has looked at the differences that were found"),
  };
}

}  // namespace

std::span<const Operation> operations() {
  static const std::vector<Operation> all = [] {
    std::vector<Operation> both = looks();
    for (Operation& one : changes()) {
      if (one.path == "/parked/retry" || one.path == "/tasks/retry" || one.path == "/tasks/cancel")
        one.preview = "--preview";
      both.push_back(std::move(one));
    }
    return both;
  }();
  return all;
}

}  // namespace outbox::console
