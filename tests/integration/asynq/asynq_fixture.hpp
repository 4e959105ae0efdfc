// What the tests of the sink for asynq share.
#pragma once

#include <string>
#include <vector>

#include "integration/asynq/asynq_tasks.hpp"
#include "integration/redis/own_redis_fixture.hpp"

namespace outbox::test {

class AsynqSinkTest : public OwnRedisTest {
 protected:
  AsynqSinkTest() : OwnRedisTest("asynq") {}

  [[nodiscard]] std::string run(const Words& command) { return server().run(command); }
  [[nodiscard]] std::vector<std::string> pending(const std::string& queue = "default") {
    RedisClient client = server().client();
    return pending_ids(client, queue);
  }
  [[nodiscard]] AsynqTask task(const Load& load, std::size_t place = 0,
                               const std::string& queue = "default") {
    RedisClient client = server().client();
    return read_task(client, queue, load.item(place).id_text);
  }
  /// A field of the task's hash.
  [[nodiscard]] std::string field(const std::string& id, const std::string& name) {
    return run({"HGET", asynq_key("default", "t:" + id), name});
  }
  void expect_each_once(const Load& load) {
    RedisClient client = server().client();
    const auto found = places(arrived_tasks(client, "default"), load);
    expect_complete_and_ordered(found, load);
    EXPECT_EQ(found.size(), load.size());
  }
};

}  // namespace outbox::test
