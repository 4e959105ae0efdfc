// What has become of a task: what the function task_status() of migrations/postgres/0008_tasks.sql does.
#pragma once

#include <optional>
#include <outbox/error.hpp>
#include <outbox/task.hpp>

#include "store/sqlite/connection.hpp"

namespace outbox::store::sqlite {

/// In the transaction that is open, or in one of its own. Of several tasks with one id the newest. None: there is none.
[[nodiscard]] Result<std::optional<TaskStatus>> read_task(Connection& connection,
                                                          const EventId& id);

}  // namespace outbox::store::sqlite
