#include "console/operations.hpp"

#include <utility>

namespace outbox::console {
namespace {

using Kind = Parameter::Kind;
using Parameters = std::vector<Parameter>;
using Verb = std::vector<std::string_view>;

Parameters with(Parameters parameters, const Parameters& more) {
  parameters.insert(parameters.end(), more.begin(), more.end());
  return parameters;
}

// An answer is made in memory, so its rows are limited.
const Parameter kLimit{"limit", "--limit", Kind::number, 500};
const Parameter kApply{"apply", "--apply", Kind::flag};
const Parameter kReason{"reason", "--reason"};
const Parameter kSubscription{"subscription", "--subscription"};
const Parameter kType{"type", "--type"};
const Parameter kSince{"since", "--since"};
// The member `next` of the page before.
const Parameter kAfter{"cursor", "--after"};
const Parameter kIds{"ids", "", Kind::texts};

const Parameters kNone{};
const Parameters kParkedFilter{
    kSubscription, {"state", "--state"}, kType, {"key", "--key"}, {"error", "--error"}};
const Parameters kParkedChoice = with(kParkedFilter, {{"events", "", Kind::texts}, kApply});
const Parameters kTaskFilter{{"queue", "--queue"}, kType, {"state", "--state"}, {"key", "--key"}};
const Parameters kEventFilter{{"id", "--id"},       {"key", "--key"},       kType, kSince,
                              {"until", "--until"}, {"cursor", "--before"}, kLimit};
const Parameters kInboxFilter{{"consumer", "--consumer"}, {"id", "--id"},         kType, kSince,
                              {"until", "--until"},       {"cursor", "--before"}, kLimit};
const Parameters kAuditFilter{
    kSince, {"cursor", "--before"}, {"person", "--person"}, kSubscription, kLimit};
const Parameters kReplayChoice{{"from_seq", "--from-seq", Kind::number},
                               {"until_seq", "--until-seq", Kind::number},
                               {"from_time", "--from-time"},
                               {"until_time", "--until-time"},
                               {"id", "--id", Kind::texts},
                               {"type", "--type", Kind::texts},
                               {"aggregate_type", "--aggregate-type", Kind::texts},
                               {"header", "--header", Kind::texts},
                               {"key", "--key"},
                               kApply};
const Parameters kEdit{kSubscription,
                       {"payload", "--payload-text"},
                       {"event_type", "--event-type"},
                       {"content_type", "--content-type"},
                       {"headers", "--header", Kind::texts},
                       {"without_headers", "--without-header", Kind::texts},
                       kApply,
                       kReason};

Operation look(std::string_view path, Verb words, Parameters parameters = {},
               std::string_view segment_option = {}) {
  words.emplace_back("--json");
  return {.method = "GET",
          .path = path,
          .words = std::move(words),
          .parameters = std::move(parameters),
          .segment_option = segment_option};
}

Operation change(std::string_view path, Verb words, Parameters parameters = {},
                 std::string_view segment_option = {}) {
  return {.method = "POST",
          .path = path,
          .words = std::move(words),
          .parameters = std::move(parameters),
          .segment_option = segment_option,
          .document = false,
          .role = Role::operates};
}

Operation change_named(std::string_view path, Verb words, Parameters parameters) {
  Operation operation = change(path, std::move(words), std::move(parameters));
  operation.acts_on_names = true;
  return operation;
}

Operation with_contents(Operation operation, Contents contents) {
  operation.contents = contents;
  return operation;
}

/// A change that only an administrator may make.
Operation administer(Operation operation) {
  operation.role = Role::administers;
  return operation;
}

}  // namespace

std::span<const Operation> operations() {
  static const std::vector<Operation> all{
      look("/status", {"status"}, {kSince}),
      look("/doctor", {"doctor"}),
      look("/subscriptions", {"subscription", "list"}),
      look("/events", {"events"}, kEventFilter),
      look("/events/{id}", {"events"}, kNone, "--id"),
      with_contents(look("/events/{id}/payload", {"events", "--payload"}, kNone, "--id"),
                    Contents::all),
      look("/parked", {"parked", "list"}, with(kParkedFilter, {kAfter, kLimit})),
      look("/parked/errors", {"parked", "errors"}, with(kParkedFilter, {kLimit})),
      with_contents(look("/parked/{event}", {"parked", "show"}, {kSubscription}), Contents::some),
      look("/replays", {"replay", "--list"}, {kLimit}),
      look("/replays/{id}", {"replay"}, kNone, "--show"),
      look("/tasks", {"tasks", "list"}, with(kTaskFilter, {kAfter, kLimit})),
      with_contents(look("/tasks/{id}", {"tasks", "show"}), Contents::some),
      look("/schedules", {"tasks", "schedule", "list"}),
      look("/inbox", {"inbox"}),
      look("/inbox/messages", {"inbox", "--messages"}, kInboxFilter),
      look("/audit", {"audit"}, kAuditFilter),
      look("/verify", {"verify"}, {kSubscription}),

      change("/subscriptions/{name}/pause", {"subscription", "pause"}, {kReason}),
      change("/subscriptions/{name}/resume", {"subscription", "resume"}),
      change("/subscriptions/{name}/replay", {"replay", "--no-wait"}, kReplayChoice),
      change_named("/parked/retry", {"parked", "retry"},
                   with(kParkedChoice, {{"keep_attempts", "--keep-attempts", Kind::flag}})),
      change("/parked/discard", {"parked", "discard"}, with(kParkedChoice, {kReason})),
      with_contents(administer(change("/parked/{event}/edit", {"parked", "edit"}, kEdit)),
                    Contents::all),
      change("/replays/{id}/stop", {"replay"}, kNone, "--stop"),
      change("/replays/{id}/resume", {"replay", "--no-wait"}, kNone, "--resume"),
      change_named("/tasks/retry", {"tasks", "retry"}, with(kTaskFilter, {kIds, kApply})),
      change_named("/tasks/cancel", {"tasks", "cancel"},
                   with(kTaskFilter, {kIds, kApply, kReason})),
      change("/queues/{queue}/pause", {"tasks", "pause"}, {kType, kReason}),
      change("/queues/{queue}/resume", {"tasks", "resume"}, {kType}),
      change("/schedules/{name}/pause", {"tasks", "schedule", "pause"}),
      change("/schedules/{name}/resume", {"tasks", "schedule", "resume"}),
      administer(change("/schedules/{name}/remove", {"tasks", "schedule", "remove"}, {kApply})),
      administer(change("/verify/acknowledge", {"verify", "--acknowledge"}, {kSubscription})),
  };
  return all;
}

}  // namespace outbox::console
