// How both stores say where a task stands.
#pragma once

#include <cstdint>
#include <outbox/task.hpp>
#include <string_view>

namespace outbox::store {

/// `word`: of a task, or what became of its event in the subscription that delivers it (store/history.hpp).
void set_state(TaskStatus& status, std::string_view word);

[[nodiscard]] inline TaskStatus::Time task_time(std::int64_t us_since_1970) {
  return TaskStatus::Time(std::chrono::microseconds(us_since_1970));
}

}  // namespace outbox::store
