#include "store/common/task_status.hpp"

#include "event/task_queue.hpp"

namespace outbox::store {

void set_state(TaskStatus& status, std::string_view word) {
  if (const auto state = event::find_task_state(word)) {
    status.state = *state;
    return;
  }
  if (word == "published") {
    status.state = TaskState::completed;
    return;
  }
  status.state = TaskState::cancelled;
  if (word == "edited") status.error = "a corrected copy took its place";
  if (word == "skipped") status.error = "the subscription of its queue began after it";
  if (word == "filtered") status.error = "the subscription of its queue does not take it";
}

}  // namespace outbox::store
