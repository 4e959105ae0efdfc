// outbox/task.hpp: work to be done once the transaction commits, and how to enqueue it.
//
//   outbox::postgres::Transaction tx(connection);
//   ... INSERT INTO report ... on connection ...
//   const outbox::EventId id = outbox::enqueue_task(box, tx, {.queue = "reports", .type = "report.make",
//                                                             .payload = R"({"month": "2026-10"})"});
//   tx.commit();                             // the task exists if and only if this succeeds
//
// A task is an event that a worker's handler works off (outbox/worker.hpp) instead of a sink. It is written into the same log by the same
// rules. Subscriptions do not get it, unless their aggregate_types name the queue in full: "outbox-task:reports".
//
// Any program that can enqueue an event can enqueue a task: aggregate_type "outbox-task:QUEUE", aggregate_id the key, event_type the type.
//
// Threads: values; Const methods from any thread.
// Lifetime: Task owns its strings.
// Errors: as those of enqueue(); validate() names the field that is wrong.
#pragma once

#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace outbox {

/// What the aggregate_type of a task begins with; the queue follows.
inline constexpr std::string_view kTaskPrefix = "outbox-task:";

/// A task to enqueue.
struct Task {
  /// Which workers do it. Letters, digits, '-', '_' and '.', at most 50 bytes. Default: default.
  std::string queue{"default"};
  /// Which handler does it ("report.make"). Required, not blank, at most 255 bytes, no control characters.
  std::string type;
  /// What the handler gets, byte for byte. At most EventLimits::payload_bytes.
  std::string payload;
  /// Tasks of one key run one at a time and in order, also through retries. At most 255 bytes. Default: empty, no order.
  std::string key{};
  /// As those of an event. Default: none.
  std::vector<Header> headers{};
  /// The media type of the payload. When it is JSON the payload must parse as JSON. Default: application/json.
  std::string content_type{"application/json"};
  /// The caller's own id. Default: a new UUIDv7.
  std::optional<EventId> id{};
};

/// Checks a task. The error names the field ("queue: is empty").
[[nodiscard]] Status validate(const Task& task, const EventLimits& limits = {});

/// The event that is written for a task. Throws Exception when queue, type or key are not valid; the rest is checked when it is enqueued.
[[nodiscard]] Event event_of(Task task);

/// Enqueues it with an Outbox of either store. `transaction`: whatever box.enqueue() takes. Returns the id of the task.
template <class Box, class Transaction>
EventId enqueue_task(const Box& box, Transaction&& transaction, Task task) {
  return box.enqueue(std::forward<Transaction>(transaction), event_of(std::move(task)));
}

}  // namespace outbox
