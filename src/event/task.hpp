// How a task looks in the log. Pure.
#pragma once

#include <outbox/task.hpp>
#include <string>
#include <string_view>

namespace outbox::event {

[[nodiscard]] inline bool is_task(std::string_view aggregate_type) {
  return aggregate_type.starts_with(kTaskPrefix);
}
/// Of a task.
[[nodiscard]] inline std::string_view queue_of(std::string_view aggregate_type) {
  return aggregate_type.substr(kTaskPrefix.size());
}
[[nodiscard]] inline std::string aggregate_type_of(std::string_view queue) {
  return std::string(kTaskPrefix).append(queue);
}

[[nodiscard]] Status check_queue(std::string_view queue);

}  // namespace outbox::event
