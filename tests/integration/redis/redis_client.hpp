// A Redis client for the tests. It uses hiredis' blocking functions, and nothing of the sink's
// code.
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

  /// The value of the first field of that name.
  [[nodiscard]] std::optional<std::string> field(const std::string& name) const;
};

class RedisClient {
 public:
  /// Connects to 127.0.0.1. Throws if it cannot.
  explicit RedisClient(int port, const std::string& password = {});

  /// Returns the reply as text: numbers in digits, no value as "", elements of arrays one per line.
  /// Throws an error of the server.
  std::string run(const Words& command);
  [[nodiscard]] long number(const Words& command) { return std::stol(run(command)); }
  /// Whether the server answers and has loaded its data.
  [[nodiscard]] static bool answers(int port, const std::string& password = {});
  /// The value of a line of INFO, such as "master" or "up".
  [[nodiscard]] std::string info(const std::string& name);

  [[nodiscard]] std::vector<RedisEntry> entries(const std::string& stream);
  /// The entries in the form that the conformance suites use.
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
