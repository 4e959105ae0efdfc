// Which servers the tests may use, and what to say when one is missing.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace outbox::test {

/// The value of an environment variable; nothing when it is not set or empty.
[[nodiscard]] std::optional<std::string> environment(const char* name);

/// Ends one of the shared test servers without warning, and starts it again: `scripts/servers kill|up DIR SERVER`, with the
/// folder that OUTBOX_TEST_SERVERS names.
void kill_server(const std::string& server);
void start_server(const std::string& server);

/// How many times longer than in a quick run (OUTBOX_TEST_SOAK): 1 unless somebody wants to wait.
[[nodiscard]] int soak_factor();

}  // namespace outbox::test

/// First line of a test or of SetUp(): skips, saying what is missing.
#define OUTBOX_NEEDS(variable, what)                           \
  if (!::outbox::test::environment(variable)) {                \
    GTEST_SKIP() << "needs " << (what) << ": " << (variable)   \
                 << " is not set (scripts/servers start DIR)"; \
  }                                                            \
  static_assert(true)
#define OUTBOX_NEEDS_POSTGRES() OUTBOX_NEEDS("OUTBOX_TEST_POSTGRES", "a PostgreSQL server")
#define OUTBOX_NEEDS_PGBIN() OUTBOX_NEEDS("OUTBOX_TEST_PGBIN", "PostgreSQL server programs")
#define OUTBOX_NEEDS_KAFKA() OUTBOX_NEEDS("OUTBOX_TEST_KAFKA", "a Kafka broker")
