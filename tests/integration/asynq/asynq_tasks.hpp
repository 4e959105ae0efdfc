// Reads tasks as they are in Redis. It uses hiredis and protozero, and nothing of the sink's code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "integration/redis/redis_client.hpp"

namespace outbox::test {

struct AsynqTask {
  std::string type;
  std::string payload;
  std::string id;
  std::string queue;
  std::int64_t retry{0};
  std::int64_t timeout{0};
  std::int64_t retention{0};
  std::vector<std::pair<std::string, std::string>> headers;
  bool has_other_fields{false};

  /// The value of the first header of that name.
  [[nodiscard]] std::optional<std::string> header(const std::string& name) const;
};

/// Throws if the bytes are no such message.
[[nodiscard]] AsynqTask parse_task(const std::string& message);

/// The Redis key of something in this queue, such as "pending" or "t:ID".
[[nodiscard]] std::string asynq_key(const std::string& queue, const std::string& what);

/// The ids in `pending`, in the order in which workers would take them.
[[nodiscard]] std::vector<std::string> pending_ids(RedisClient& client, const std::string& queue);
[[nodiscard]] AsynqTask read_task(RedisClient& client, const std::string& queue,
                                  const std::string& id);
/// The pending tasks in the form that the conformance suites use.
[[nodiscard]] std::vector<Arrived> arrived_tasks(RedisClient& client, const std::string& queue);

}  // namespace outbox::test
