// The settings of a sink for asynq. See docs/sinks/asynq.md.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "sink/asynq/tasks.hpp"
#include "sink/hiredis/purpose.hpp"
#include "sink/hiredis/settings.hpp"
#include "sink/kind.hpp"

namespace outbox::sink::asynq {

struct AsynqSettings : hiredis::ServerSettings {
  std::string queue{"default"};
  std::string type{"{event_type}"};
  std::string task_id{"{id}"};
  std::size_t max_retry{25};
  std::chrono::milliseconds timeout{std::chrono::minutes(30)};
  std::chrono::milliseconds retention{std::chrono::hours(24)};
};

/// Adds an error for each setting that is wrong.
[[nodiscard]] TaskOptions make_task_options(const AsynqSettings& settings, FieldErrors& errors);

/// What the sink does with these settings.
[[nodiscard]] hiredis::Purpose make_purpose(const AsynqSettings& settings);

}  // namespace outbox::sink::asynq
