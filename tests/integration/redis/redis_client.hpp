// A client of its own for the tests: hiredis' blocking one, nothing of the sink's code.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/sink/suite.hpp"

struct redisContext;

namespace outbox::test {

using Words = std::vector<std::string>;

/// An entry of a stream: its fields in their order.
struct RedisEntry {
  std::string id;
  std::vector<std::pair<std::string, std::string>> fields;

  /// The first field of that name.
  [[nodiscard]] std::optional<std::string> field(const std::string& name) const;
};

class RedisClient {
 public:
  /// Connects to 127.0.0.1. Throws when it cannot.
  explicit RedisClient(int port, const std::string& password = {});

  /// The reply as text: numbers in digits, no value as "", elements of arrays one per line. Throws
  /// an error of the server.
  std::string run(const Words& command);
  [[nodiscard]] long number(const Words& command) { return std::stol(run(command)); }
  /// Whether it answers and has loaded its data.
  [[nodiscard]] static bool answers(int port, const std::string& password = {});
  /// A line of INFO: "master", "up".
  [[nodiscard]] std::string info(const std::string& name);

  [[nodiscard]] std::vector<RedisEntry> entries(const std::string& stream);
  /// The same as the suites want it.
  [[nodiscard]] std::vector<Arrived> arrived(const std::string& stream);

 private:
  struct Free {
    void operator()(redisContext* context) const noexcept;
  };
  std::unique_ptr<redisContext, Free> context_;
};

/// The shared server of OUTBOX_TEST_REDIS (redis://:PASSWORD@127.0.0.1:PORT).
struct SharedRedis {
  int port{0};
  std::string password;
};
[[nodiscard]] std::optional<SharedRedis> shared_redis();

}  // namespace outbox::test
