// A handler that runs a program, for those who write no handler in C++ (docs/guide/tasks.md,
// "Handlers without C++").
#pragma once

#include <outbox/worker.hpp>

#include "task/child.hpp"

namespace outbox::task {

/// The exit status of sysexits.h that has a meaning of its own.
inline constexpr int kExitBadData = 65;  ///< EX_DATAERR: no run can succeed.

/// What the end of its program means for a task.
[[nodiscard]] TaskEnd end_of_child(const ChildEnd& end);

/// The payload is the program's input. Its environment says what the task is: OUTBOX_TASK_ID,
/// _TYPE, _QUEUE, _KEY, _ATTEMPT, _CONTENT_TYPE, _HEADERS.
[[nodiscard]] Handlers::Run exec_handler(ChildOptions options);

}  // namespace outbox::task
