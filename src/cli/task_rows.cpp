#include "cli/task_rows.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "cli/event_input.hpp"
#include "event/task.hpp"
#include "event/task_queue.hpp"

namespace outbox::cli {

using store::ParkedListing;
using store::ParkedState;

std::vector<store::SubscriptionRow> Queues::of(const std::optional<std::string>& queue) const {
  std::vector<store::SubscriptionRow> found;
  std::vector<std::string> known;
  for (const auto& row : rows) {
    const auto its = event::queue_of_subscription(row.spec.name);
    if (!its) continue;
    known.push_back(*its);
    if (!queue || *queue == *its) found.push_back(row);
  }
  if (!queue || !found.empty()) return found;
  const std::vector<std::string_view> names(known.begin(), known.end());
  throw Failure(kError, "unknown queue: " + *queue,
                did_you_mean(*queue, names, "a queue is known once a worker has served it"));
}

TaskState parse_state(const std::string& word) {
  const auto state = event::find_task_state(word);
  if (!state)
    throw Failure(kUsage, "--state " + word + ": unknown",
                  "pending, scheduled, running, retrying, waiting or dead");
  if (*state == TaskState::completed || *state == TaskState::cancelled)
    throw Failure(kUsage, "--state " + word + ": tasks that have ended are not listed",
                  "outbox tasks show ID");
  return *state;
}

TaskState find_state(const ParkedListing& row) {
  switch (row.state) {
    case ParkedState::retrying: return row.scheduled ? TaskState::scheduled : TaskState::retrying;
    case ParkedState::waiting: return TaskState::waiting;
    case ParkedState::dead: return TaskState::dead;
    case ParkedState::running: return TaskState::running;
    case ParkedState::ready: return TaskState::pending;
  }
  return TaskState::dead;
}

namespace {

/// Sets the state, which must be one that has rows.
void set_state(store::ParkedFilter& filter, TaskState state) {
  using enum TaskState;
  if (state == running) filter.state = ParkedState::running;
  if (state == waiting) filter.state = ParkedState::waiting;
  if (state == dead) filter.state = ParkedState::dead;
  if (state != scheduled && state != retrying) return;
  filter.state = ParkedState::retrying;
  filter.scheduled = state == scheduled;
}

store::ParkedFilter make_filter(const TaskChoice& choice) {
  store::ParkedFilter filter{.aggregate_id = choice.key.value_or(""),
                             .event_type = choice.type.value_or("")};
  if (choice.state) set_state(filter, parse_state(*choice.state));
  return filter;
}

}  // namespace

void for_each_page(const TaskChoice& choice, const Queues& open,
                   const std::function<void(const std::vector<ParkedListing>&)>& take) {
  store::ParkedFilter filter = make_filter(choice);
  for (const auto& subscription : open.of(choice.queue)) {
    filter.subscription = subscription.id;
    each_page(open, filter, take);
  }
}

std::vector<ParkedListing> read_rows(const TaskChoice& choice, const Queues& open,
                                     std::size_t limit) {
  store::ParkedFilter filter = make_filter(choice);
  std::vector<ParkedListing> all;
  bool begins = !choice.after;
  for (const auto& subscription : open.of(choice.queue)) {
    if (all.size() >= limit) break;
    const bool ended_here = choice.after && choice.after->first == subscription.id;
    begins = begins || ended_here;
    if (!begins) continue;
    filter.subscription = subscription.id;
    filter.after = ended_here ? choice.after : std::nullopt;
    for (auto& row : must(open.parked->list(filter, limit - all.size(), false)))
      all.push_back(std::move(row));
  }
  return all;
}

std::optional<PageEnd> parse_page_end(const std::optional<std::string>& text) {
  if (!text) return {};
  const auto parse = [](std::string_view digits, auto& number) {
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, number);
    return error == std::errc() && stop == end;
  };
  const std::string_view view = *text;
  const auto dot = std::min(view.find('.'), view.size());
  PageEnd at;
  const bool parsed = parse(view.substr(0, dot), at.first) &&
                      parse(view.substr(std::min(dot + 1, view.size())), at.second);
  if (!parsed)
    throw Failure(kUsage, "--after " + *text + ": is not a place in the list",
                  "the list ends with it when there are more: 3.4711");
  return at;
}

EventId parse_task_id(const std::string& text) {
  const auto id = EventId::parse(text);
  if (!id)
    throw Failure(kUsage, text + ": is not the id of a task",
                  "a UUID, as outbox tasks list shows it");
  return *id;
}

FoundTask find_task(const Queues& open, const std::string& text) {
  const EventId id = parse_task_id(text);
  auto page = must(must(open.store->events())->list({.id = id}, 1, true));
  if (page.events.empty()) event_not_found(text, "task", page.complete);
  if (!event::is_task(page.events.front().aggregate_type))
    throw Failure(kError, text + ": is an event, and no task", "outbox events --id " + text);
  auto status = must(must(open.store->task_queues())->task(id));
  if (!status) event_not_found(text, "task", true);
  return {.event = std::move(page.events.front()), .status = std::move(*status)};
}

namespace {

/// Ends the verb: a task without a row cannot be changed.
[[noreturn]] void has_no_row(const Queues& open, const std::string& text) {
  const TaskStatus status = find_task(open, text).status;
  const std::string what = text + ": is " + to_string(status.state);
  if (status.state != TaskState::pending)
    throw Failure(kError, what + ", it cannot be changed", "outbox tasks show " + text);
  throw Failure(
      kError, what + ": it is in the log only, and cannot be cancelled or moved there",
      "it has a row, and can be cancelled, when it has run for 1 s, has failed, or waits; outbox tasks pause " +
          status.queue + " keeps workers from beginning tasks of its queue");
}

}  // namespace

std::vector<ParkedListing> rows_with_ids(const std::vector<std::string>& ids, const Queues& open) {
  std::vector<ParkedListing> all;
  for (const std::string& text : ids) {
    const auto found = must(open.parked->list({.id = parse_task_id(text)}, 100, false));
    const auto before = all.size();
    for (const auto& row : found) {
      if (event::queue_of_subscription(open.subscription_name(row.subscription)))
        all.push_back(row);
    }
    if (all.size() == before) has_no_row(open, text);
  }
  return all;
}

}  // namespace outbox::cli
