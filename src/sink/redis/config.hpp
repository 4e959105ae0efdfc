// The settings of a Redis sink. See docs/sinks/redis.md.
#pragma once

#include <chrono>
#include <cstddef>

#include "sink/hiredis/purpose.hpp"
#include "sink/hiredis/settings.hpp"
#include "sink/kind.hpp"

namespace outbox::sink::redis {

struct RedisSettings : hiredis::ServerSettings {
  /// With 0 ids are not remembered.
  std::chrono::milliseconds dedup_window{std::chrono::minutes(10)};
  std::size_t max_length{0};  ///< With 0 a stream has no limit.
};

/// The rows of the settings and their checks.
[[nodiscard]] const Declaration<RedisSettings>& declaration();

/// What the sink does with these settings.
[[nodiscard]] hiredis::Purpose make_purpose(const RedisSettings& settings);

}  // namespace outbox::sink::redis
