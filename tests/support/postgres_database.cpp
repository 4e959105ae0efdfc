#include "support/postgres_database.hpp"

#include <unistd.h>

#include <atomic>
#include <exception>

#include "support/servers.hpp"
#include "support/store.hpp"

namespace outbox::test {
namespace {

std::string next_name() {
  static std::atomic<int> count{0};
  return "outbox_test_" + std::to_string(getpid()) + "_" + std::to_string(++count);
}

/// A migrated database on the shared server, of which the tests of this process get copies: a
/// migration takes several times as long as a copy.
const std::string& shared_template() {
  static const PostgresDatabase database(environment("OUTBOX_TEST_POSTGRES").value_or(""),
                                         PostgresDatabase::Schema::migrated);
  return database.name();
}

}  // namespace

std::string url_of_database(const std::string& server_url, const std::string& database) {
  // postgresql://user@host:port/database?options
  const auto host = server_url.find("://") + 3;
  const auto slash = server_url.find('/', host);
  const auto question = server_url.find('?', host);
  const std::string options = question == std::string::npos ? "" : server_url.substr(question);
  return server_url.substr(0, std::min(slash, question)) + "/" + database + options;
}

PostgresDatabase::PostgresDatabase(Schema schema)
    : PostgresDatabase(environment("OUTBOX_TEST_POSTGRES").value_or(""), Schema::empty,
                       schema == Schema::migrated ? shared_template() : "template1") {}

PostgresDatabase::PostgresDatabase(const std::string& server_url, Schema schema)
    : PostgresDatabase(server_url, schema, "template1") {}

PostgresDatabase::PostgresDatabase(const std::string& server_url, Schema schema,
                                   const std::string& original)
    : server_url_(server_url), name_(next_name()), url_(url_of_database(server_url, name_)) {
  // A busy machine may need longer than the default of the product, 5 s.
  if (url_.find("connect_timeout=") == std::string::npos)
    url_ += (url_.find('?') == std::string::npos ? "?" : "&") + std::string("connect_timeout=60");
  Pg(server_url_).exec("CREATE DATABASE " + name_ + " TEMPLATE " + original);
  if (schema == Schema::migrated) (void)migrated_store(url_, "outbox", "outbox test");
}

PostgresDatabase::~PostgresDatabase() {
  try {
    Pg(server_url_).exec("DROP DATABASE IF EXISTS " + name_ + " WITH (FORCE)");
  } catch (const std::exception&) {
    // The server of a fault test may be down. Its folder is removed anyway.
  }
}

}  // namespace outbox::test
