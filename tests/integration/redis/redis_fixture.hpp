// What the tests of the Redis sink share.
#pragma once

#include <string>

#include "integration/redis/own_redis_fixture.hpp"

namespace outbox::test {

constexpr const char* kStream = "order.events";

class RedisSinkTest : public OwnRedisTest {
 protected:
  RedisSinkTest() : OwnRedisTest("redis") {}

  [[nodiscard]] long length(const std::string& stream = kStream) {
    return server().client().number({"XLEN", stream});
  }
  [[nodiscard]] bool is_remembered(const Load& load, std::size_t place = 0) {
    const std::string key =
        "outbox:dedup:{" + load.item(place).topic + "}:" + load.item(place).id_text;
    return server().client().number({"EXISTS", key}) == 1;
  }
  void expect_each_once(const Load& load) {
    const auto found = places(server().client().arrived(kStream), load);
    expect_complete_and_ordered(found, load);
    EXPECT_EQ(found.size(), load.size());
  }
};

}  // namespace outbox::test
