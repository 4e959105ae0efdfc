// A database for one test, with the schema of the outbox. It is dropped at the end.
#pragma once

#include <string>

#include "support/pg.hpp"

namespace outbox::test {

class PostgresDatabase {
 public:
  enum class Schema { migrated, empty };

  /// Makes it on the shared test server (OUTBOX_TEST_POSTGRES), or on the one at `server_url`.
  explicit PostgresDatabase(Schema schema = Schema::migrated);
  PostgresDatabase(const std::string& server_url, Schema schema);
  PostgresDatabase(const PostgresDatabase&) = delete;
  PostgresDatabase& operator=(const PostgresDatabase&) = delete;
  ~PostgresDatabase();

  [[nodiscard]] const std::string& url() const { return url_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] Pg connect() const { return Pg(url_); }

 private:
  PostgresDatabase(const std::string& server_url, Schema schema, const std::string& original);

  std::string server_url_;
  std::string name_;
  std::string url_;
};

/// The URL of another database of the same server.
[[nodiscard]] std::string url_of_database(const std::string& server_url,
                                          const std::string& database);

}  // namespace outbox::test
