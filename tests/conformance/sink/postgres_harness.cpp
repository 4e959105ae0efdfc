// Runs the suite over the PostgreSQL sink, with a real server of its own and a table for each test.
#include "conformance/sink/server_harness.hpp"
#include "integration/postgres_sink/destination.hpp"

namespace outbox::test {
namespace {

class PostgresHarness final : public ServerHarness {
 public:
  PostgresHarness() { destination_.make_table(table_); }

  std::string server() const override { return "postgres"; }
  bool may_kill() const override { return true; }
  void kill() override { destination_.server().stop_immediate(); }
  void start() override { destination_.server().start(); }
  std::string sink() const override { return "postgres"; }
  int port() const override { return destination_.port(); }

  SinkSettings settings(int port) const override {
    return {{"url", destination_.url(port)},
            {"password", PostgresDestination::kPassword},
            {"table", table_},
            {"delivered_table", "ids_of_" + table_},
            {"create", "true"},
            {"deadline", "3s"},
            {"connect_timeout", "2s"}};
  }
  SinkSettings wrong_password(int port) const override {
    SinkSettings all = settings(port);
    all["password"] = "hunter2-wrong";
    return all;
  }

  std::vector<Arrived> delivered() override { return destination_.arrived(table_); }
  std::size_t too_large() const override { return (std::size_t{1} << 20U) + 1; }
  bool block() override {
    destination_.refuse_writes();
    return true;
  }
  void unblock() override { destination_.allow_writes(); }

 private:
  PostgresDestination& destination_{*shared_destination()};
  const std::string table_{PostgresDestination::new_name("inbox_")};
};

}  // namespace

ServerHarnessKind server_harness_kind() {
  return {
      "postgres",
      []() -> std::unique_ptr<ServerHarness> {
        if (shared_destination() == nullptr) return nullptr;
        return std::make_unique<PostgresHarness>();
      },
      "needs PostgreSQL server programs: OUTBOX_TEST_PGBIN is not set (scripts/servers start DIR)"};
}

}  // namespace outbox::test
