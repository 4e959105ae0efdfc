// The subscriptions that deliver a queue, one for each priority: task.QUEUE, task1.QUEUE,
// task3.QUEUE, task4.QUEUE. A type that has a limit of its own or was paused has as many for
// itself, type.QUEUE.HASH and so on, and the others then leave its tasks out. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <outbox/subscription.hpp>
#include <outbox/task.hpp>
#include <string>
#include <string_view>

#include "event/task.hpp"

namespace outbox::event {

/// Returns nullopt if there is no such word.
[[nodiscard]] std::optional<TaskState> find_task_state(std::string_view word);

/// The queue that a subscription delivers, by its name; nullopt if it delivers none.
[[nodiscard]] std::optional<std::string> queue_of_subscription(std::string_view name);
/// Whether it delivers a priority of a queue, even one that nobody uses, or one type of it.
[[nodiscard]] bool is_of_queue(const SubscriptionSpec& spec);
/// Whether it delivers one type only, which is spec.event_types[0].
[[nodiscard]] bool is_of_type(const SubscriptionSpec& spec);
/// Whether its tasks were those of the subscription `base` before, at whose cursor it begins.
[[nodiscard]] bool is_split_from(const SubscriptionSpec& spec, const SubscriptionSpec& base);
/// The queue of a task, by its aggregate_type "outbox-task:QUEUE" or "outbox-task:QUEUE!PRIORITY".
[[nodiscard]] std::string queue_of_task(std::string_view aggregate_type);
/// The name of the subscription that delivers a priority of a queue.
[[nodiscard]] std::string subscription_of_queue(std::string_view queue,
                                                std::size_t priority = kDefaultPriority);
/// The name of the subscription that delivers a task unless its type has its own.
[[nodiscard]] std::string subscription_of_task(std::string_view aggregate_type);
/// The name of the subscription that delivers only the task's type.
[[nodiscard]] std::string subscription_of_type(std::string_view aggregate_type,
                                               std::string_view event_type);
/// The subscription for one type; `base` is that of its queue.
[[nodiscard]] SubscriptionSpec spec_of_type(const SubscriptionSpec& base, std::string_view type);

}  // namespace outbox::event
