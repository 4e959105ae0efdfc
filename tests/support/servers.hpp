// The servers that tests may use, and the messages when one is missing.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace outbox::test {

/// The value of an environment variable; nullopt if it is unset or empty.
[[nodiscard]] std::optional<std::string> environment(const char* name);

/// Kills one of the shared test servers, and starts it again: `scripts/servers kill|up DIR SERVER`,
/// with DIR from OUTBOX_TEST_SERVERS.
void kill_server(const std::string& server);
void start_server(const std::string& server);

/// The factor by which to lengthen a test (OUTBOX_TEST_SOAK); 1 by default.
[[nodiscard]] int soak_factor();

}  // namespace outbox::test

/// The first line of a test or of SetUp(). It skips the test with a message that names what is
/// missing.
#define OUTBOX_NEEDS(variable, what)                           \
  if (!::outbox::test::environment(variable)) {                \
    GTEST_SKIP() << "needs " << (what) << ": " << (variable)   \
                 << " is not set (scripts/servers start DIR)"; \
  }                                                            \
  static_assert(true)
#define OUTBOX_NEEDS_POSTGRES() OUTBOX_NEEDS("OUTBOX_TEST_POSTGRES", "a PostgreSQL server")
#define OUTBOX_NEEDS_PGBIN() OUTBOX_NEEDS("OUTBOX_TEST_PGBIN", "PostgreSQL server programs")
#define OUTBOX_NEEDS_REDIS() OUTBOX_NEEDS("OUTBOX_TEST_REDIS", "a Redis server")
#define OUTBOX_NEEDS_KAFKA() OUTBOX_NEEDS("OUTBOX_TEST_KAFKA", "a Kafka broker")
#define OUTBOX_NEEDS_NATS() OUTBOX_NEEDS("OUTBOX_TEST_NATS", "a NATS server with JetStream")
#define OUTBOX_NEEDS_SQS() OUTBOX_NEEDS("OUTBOX_TEST_SQS", "an ElasticMQ server")
#define OUTBOX_NEEDS_RABBITMQ() OUTBOX_NEEDS("OUTBOX_TEST_RABBITMQ", "a RabbitMQ server")
