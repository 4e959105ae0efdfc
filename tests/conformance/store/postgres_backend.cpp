#include "conformance/store/database.hpp"
#include "support/postgres_database.hpp"
#include "support/servers.hpp"

namespace outbox::conformance {
namespace {

using Schema = test::PostgresDatabase::Schema;

class PostgresBackend final : public Database {
 public:
  explicit PostgresBackend(Begin begin)
      : database_(begin == Begin::migrated ? Schema::migrated : Schema::empty) {}

  [[nodiscard]] std::string url() const override { return database_.url(); }

  void enqueue_and_roll_back(const Event& event) override {
    test::Pg application = database_.connect();
    application.exec("BEGIN");
    application.exec("SELECT outbox.enqueue($1, $2, $3, $4::jsonb)",
                     {event.aggregate_type, event.aggregate_id, event.event_type, event.payload});
    application.exec("ROLLBACK");
  }

  void make_schema_too_new() override {
    database_.connect().exec(
        "INSERT INTO outbox.migration (version, name, checksum) VALUES (99, '0099_future', '')");
  }

 private:
  test::PostgresDatabase database_;
};

std::string missing() {
  if (test::environment("OUTBOX_TEST_POSTGRES")) return {};
  return "needs a PostgreSQL server: OUTBOX_TEST_POSTGRES is not set (scripts/servers start DIR)";
}

}  // namespace

std::vector<Backend> backends() {
  return {Backend{.name = "Postgres", .missing = missing, .create = [](Begin begin) {
                    return std::make_unique<PostgresBackend>(begin);
                  }}};
}

}  // namespace outbox::conformance
