// What has become of a task, as TaskQueries::status tells it.
#pragma once

#include <optional>
#include <outbox/task.hpp>

#include "pg/rows.hpp"

namespace outbox::store::postgres {

/// Of several tasks with one id the newest. None: there is none.
[[nodiscard]] std::optional<TaskStatus> task_status_of(const pg::Rows& rows, const EventId& id);

}  // namespace outbox::store::postgres
