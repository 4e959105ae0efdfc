// The subscriptions that deliver a queue, one for each priority: task.QUEUE, task1.QUEUE, task3.QUEUE, task4.QUEUE. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <outbox/subscription.hpp>
#include <outbox/task.hpp>
#include <string>
#include <string_view>

#include "event/task.hpp"

namespace outbox::event {

/// None: no such word.
[[nodiscard]] std::optional<TaskState> find_task_state(std::string_view word);

/// Which queue a subscription delivers, by its name; none: it is no queue's.
[[nodiscard]] std::optional<std::string> queue_of_subscription(std::string_view name);
/// Whether it delivers a priority of a queue, which may be one that nobody uses.
[[nodiscard]] bool is_of_queue(const SubscriptionSpec& spec);
/// The queue of a task, by its aggregate_type: "outbox-task:QUEUE", or "outbox-task:QUEUE!PRIORITY".
[[nodiscard]] std::string queue_of_task(std::string_view aggregate_type);
/// The name of the subscription that delivers a priority of a queue.
[[nodiscard]] std::string subscription_of_queue(std::string_view queue,
                                                std::size_t priority = kDefaultPriority);
/// And that which delivers a task.
[[nodiscard]] std::string subscription_of_task(std::string_view aggregate_type);

}  // namespace outbox::event
