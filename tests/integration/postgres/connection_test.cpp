// Tests the connection: batches, values in both directions, poolers, deadlines, losses.
#include "store/postgres/connection.hpp"

#include <future>

#include "integration/postgres/harness.hpp"
#include "support/eventually.hpp"

namespace outbox::test {
namespace {

using namespace store::postgres;  // NOLINT(google-build-using-namespace): this file is about it

Query query(const std::string& sql) { return prepared("test", sql, "outbox"); }

std::unique_ptr<Connection> open_connection(const std::string& url) {
  auto connection = Connection::open({.url = url}, "test");
  EXPECT_TRUE(ok(connection));
  return connection ? std::make_unique<Connection>(std::move(*connection)) : nullptr;
}

class PostgresConnection : public ::testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_POSTGRES();
    connection_ = open_connection(*environment("OUTBOX_TEST_POSTGRES"));
    ASSERT_NE(connection_, nullptr);
  }
  std::unique_ptr<Connection> connection_;
};

TEST_F(PostgresConnection, values_come_back_as_they_went) {
  const EventId id = EventId::generate();
  const Query q = query(
      "SELECT $1::bigint, $2::int, $3::boolean, $4::uuid, $5::bytea, $6::text, $7::xid8[] = '{5,18446744073709551615}', "
      "$8::bigint[] = '{-1,2}', $9::bigint IS NULL");
  auto rows = connection_->exec(
      q, {std::int64_t{-5}, 7, true, id, Param::borrowed(std::string_view("\0\xff", 2)), "\xC3\xBC",
          Param::xid8_array(std::vector<std::uint64_t>{5, ~0ULL}),
          Param::int8_array(std::vector<std::int64_t>{-1, 2}), std::optional<std::int64_t>{}});
  ASSERT_TRUE(ok(rows));
  EXPECT_EQ(rows->int8(0, 0), -5);
  EXPECT_EQ(rows->int4(0, 1), 7);
  EXPECT_TRUE(rows->boolean(0, 2));
  EXPECT_EQ(rows->uuid(0, 3), id);
  EXPECT_EQ(rows->bytes(0, 4), std::string("\0\xff", 2));
  EXPECT_EQ(rows->text(0, 5), "\xC3\xBC");
  EXPECT_TRUE(rows->boolean(0, 6));
  EXPECT_TRUE(rows->boolean(0, 7));
  EXPECT_TRUE(rows->boolean(0, 8));
}

TEST_F(PostgresConnection, an_error_in_a_batch_leaves_it_usable_and_outside_a_transaction) {
  const Query begin = unprepared("begin", "BEGIN", "outbox");
  const Query bad = query("SELECT 1 / $1::int");
  const Query after = query("SELECT 2::bigint");
  connection_->send(begin);
  connection_->send(bad, {0});
  connection_->send(after);
  auto failed = connection_->finish();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().origin, "pg:22012");
  EXPECT_FALSE(connection_->in_transaction());
  auto good = connection_->exec(after);
  ASSERT_TRUE(ok(good));
  EXPECT_EQ(good->int8(0, 0), 2);
}

TEST_F(PostgresConnection, counts_statements) {
  const Query one = query("SELECT 1");
  const auto before = connection_->statements();
  connection_->send(one);
  connection_->send(one);
  ASSERT_TRUE(ok(connection_->finish()));
  EXPECT_EQ(connection_->statements() - before, 2U);
}

TEST_F(PostgresConnection, a_transaction_that_is_frozen_in_the_middle_is_ended_by_the_server) {
  const Query limits = query(
      "SELECT current_setting('lock_timeout') || ' ' || current_setting('idle_in_transaction_session_timeout') || ' ' || "
      "current_setting('statement_timeout')");
  std::string inside;
  ASSERT_TRUE(ok(connection_->transact([&]() -> Result<Decision> {
    auto rows = connection_->exec(limits);
    if (!rows) return tl::unexpected<Error>(rows.error());
    inside = rows->text(0, 0);
    return Decision::commit;
  })));
  EXPECT_EQ(inside, "2s 10s 15s");
  EXPECT_EQ(connection_->exec(limits)->text(0, 0), "0 0 0");
}

TEST_F(PostgresConnection, gives_up_when_no_answer_comes) {
  connection_->set_deadline(std::chrono::milliseconds(200));
  const Query sleep = query("SELECT pg_sleep(60)");
  auto failed = connection_->exec(sleep);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::deadline_exceeded);
  EXPECT_EQ(failed.error().remedy, Remedy::reconnect);
  EXPECT_EQ(failed.error().effect, Effect::unknown);
  EXPECT_TRUE(connection_->broken());
}

TEST_F(PostgresConnection, a_session_ended_by_the_server_is_to_be_opened_again) {
  auto pid = connection_->exec(query("SELECT pg_backend_pid()"));
  ASSERT_TRUE(ok(pid));
  Pg other(*environment("OUTBOX_TEST_POSTGRES"));
  ASSERT_EQ(other.value("SELECT pg_terminate_backend(" + std::to_string(pid->int4(0, 0)) + ")"),
            "t");
  const Query one = query("SELECT 1");
  ASSERT_TRUE(eventually([&] { return !connection_->exec(one); }));
  auto failed = connection_->exec(one);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().remedy, Remedy::reconnect);
}

TEST_F(PostgresConnection, refusals_are_one_line_without_the_password) {
  for (const char* url : {"postgresql://me:secret@127.0.0.1:1/shop",
                          "postgresql://me:secret@127.0.0.1:1/shop?secret=1",
                          "host=127.0.0.1 port=1 password=secret secret", "postgresql://[secret"}) {
    auto failed = Connection::open({.url = url}, "test");
    ASSERT_FALSE(failed) << url;
    EXPECT_EQ(failed.error().text().find("secret"), std::string::npos) << failed.error().text();
    EXPECT_EQ(failed.error().text().find('\n'), std::string::npos) << failed.error().text();
  }
}

TEST_F(PostgresConnection, an_unknown_database_is_named) {
  auto failed = Connection::open(
      {.url = url_of_database(*environment("OUTBOX_TEST_POSTGRES"), "no_such_database")}, "test");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::not_found);
  EXPECT_THAT(failed.error().message, ::testing::HasSubstr("no_such_database"));
}

constexpr const char* kMeaning =
    "SELECT pg_catalog.string_agg(setting, ' ' ORDER BY name)::pg_catalog.text FROM pg_catalog.pg_settings WHERE name IN "
    "('search_path', 'standard_conforming_strings', 'quote_all_identifiers', 'transform_null_equals')";

/// A database whose settings change what statements mean, and where others may plant objects that
/// its search path finds first.
class PostgresMeaning : public ::testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_POSTGRES();
    database_ = std::make_unique<PostgresDatabase>(PostgresDatabase::Schema::empty);
    Pg admin(database_->url());
    for (const char* setting : {"search_path = public, pg_catalog", "quote_all_identifiers = on",
                                "standard_conforming_strings = off", "transform_null_equals = on"})
      (void)admin.exec("ALTER DATABASE " + database_->name() + " SET " + setting);
    (void)Pg(database_->url())
        .exec(
            "CREATE FUNCTION public.set_config(text, text, boolean) RETURNS text LANGUAGE plpgsql AS "
            "'BEGIN RAISE EXCEPTION ''planted''; END'; CREATE FUNCTION public.equal(int, int) RETURNS boolean "
            "LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''planted''; END'; "
            "CREATE OPERATOR public.= (LEFTARG = int, RIGHTARG = int, FUNCTION = public.equal)");
  }
  static std::string meaning(Connection& connection) {
    const auto rows = connection.exec(query(kMeaning));
    return rows ? rows->text(0, 0) : rows.error().text();
  }
  std::unique_ptr<PostgresDatabase> database_;
};

TEST_F(PostgresMeaning,
       a_connection_of_ours_has_its_own_settings_whatever_the_database_and_the_url_say) {
  const std::string ours = "off pg_catalog, pg_temp on off";
  ASSERT_EQ(Pg(database_->url()).value(kMeaning), "on public, pg_catalog off on");
  EXPECT_EQ(meaning(*open_connection(database_->url())), ours);
  EXPECT_EQ(meaning(*open_connection(database_->url() + "&options=-c%20search_path%3Dpublic")),
            ours);
}

TEST_F(PostgresMeaning, behind_a_pooler_the_sessions_of_others_keep_theirs) {
  OUTBOX_NEEDS("OUTBOX_TEST_PGBOUNCER", "pgbouncer in transaction mode");
  const std::string url = url_of_database(*environment("OUTBOX_TEST_PGBOUNCER"), database_->name());
  (void)Pg(database_->url()).exec("DROP OPERATOR public.= (int, int)");
  EXPECT_EQ(meaning(*open_connection(url)), "on public, pg_catalog off on");
}

constexpr const char* kTimeouts =
    "SELECT string_agg(setting, ',' ORDER BY name)::text FROM pg_settings WHERE name IN ('idle_session_timeout', "
    "'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')";

/// A database whose limits are made for applications that never take long.
class PostgresTimeouts : public ::testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_POSTGRES();
    database_ = std::make_unique<PostgresDatabase>(PostgresDatabase::Schema::empty);
    Pg admin(database_->url());
    for (
        const PgRow& row : admin.exec(
            "SELECT name FROM pg_settings WHERE name IN ('idle_session_timeout', 'statement_timeout', 'lock_timeout', "
            "'idle_in_transaction_session_timeout', 'transaction_timeout')")) {
      ++settings_;
      (void)admin.exec("ALTER DATABASE " + database_->name() + " SET " + *row[0] + " = '77s'");
    }
  }
  [[nodiscard]] std::string all(const std::string& value) const {
    std::string text = value;
    for (int i = 1; i < settings_; ++i) text += "," + value;
    return text;
  }
  static std::string timeouts(Connection& connection) {
    const auto rows = connection.exec(query(kTimeouts));
    return rows ? rows->text(0, 0) : rows.error().text();
  }
  std::unique_ptr<PostgresDatabase> database_;
  int settings_{0};
};

TEST_F(PostgresTimeouts, those_of_the_database_do_not_hold_for_ours) {
  EXPECT_EQ(Pg(database_->url()).value(kTimeouts), all("77000"));
  EXPECT_EQ(timeouts(*open_connection(database_->url())), all("0"));
  // A setting in the URL itself is meant for the outbox.
  const auto asked = open_connection(database_->url() + "&options=-c%20statement_timeout%3D5s");
  EXPECT_THAT(timeouts(*asked), ::testing::HasSubstr("5000"));
}

TEST_F(PostgresTimeouts, behind_a_pooler_they_are_set_for_a_transaction_and_never_for_a_session) {
  OUTBOX_NEEDS("OUTBOX_TEST_PGBOUNCER", "pgbouncer in transaction mode");
  const std::string url = url_of_database(*environment("OUTBOX_TEST_PGBOUNCER"), database_->name());
  const auto pooled = open_connection(url);
  ASSERT_TRUE(ok(pooled->transact([&]() -> Result<Decision> {
    if (auto lifted = pooled->exec(&Queries::no_limits); !lifted)
      return tl::unexpected<Error>(lifted.error());
    EXPECT_EQ(timeouts(*pooled).find("77000"), timeouts(*pooled).rfind("77000"))
        << "only the pooler's own, idle_session_timeout";
    return Decision::commit;
  })));
  EXPECT_EQ(timeouts(*open_connection(url)), all("77000"));
}

TEST_F(PostgresTimeouts, a_migration_may_take_longer_than_any_of_them) {
  Pg admin(database_->url());
  (void)admin.exec("ALTER DATABASE " + database_->name() + " SET lock_timeout = '1ms'");
  const auto store = open_at(database_->url());
  // Another migration is under way.
  (void)admin.exec(
      "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('outbox:migrate:outbox', 0))");
  auto migrated = std::async(std::launch::async, [&] { return store->migrate(); });
  ASSERT_TRUE(eventually([&] {
    return Pg(database_->url())
               .value(
                   "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                   "AND wait_event_type = 'Lock'") == "1";
  })) << "it does not wait";
  (void)admin.exec("COMMIT");
  EXPECT_TRUE(ok(migrated.get()));
}

/// Several connections through a pooler in transaction mode, so that they get each other's
/// backends.
class PostgresPooler : public ::testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS("OUTBOX_TEST_PGBOUNCER", "pgbouncer in transaction mode");
    for (auto& connection : connections_) {
      connection = open_connection(*environment("OUTBOX_TEST_PGBOUNCER"));
      ASSERT_NE(connection, nullptr);
    }
  }
  std::array<std::unique_ptr<Connection>, 3> connections_;
};

TEST_F(PostgresPooler, statements_go_on_without_being_prepared) {
  const Query next = query("SELECT $1::bigint + 1");
  bool fell_back = false;
  for (std::int64_t round = 0; round < 20; ++round) {
    // The first connection holds its backend in a transaction while the others run, so that
    // backends change hands.
    const Status status = connections_[0]->transact([&]() -> Result<Decision> {
      for (const auto& connection : connections_) {
        auto rows = connection->exec(next, {round});
        if (!rows) return tl::unexpected<Error>(rows.error());
        EXPECT_EQ(rows->int8(0, 0), round + 1);
      }
      return Decision::commit;
    });
    ASSERT_TRUE(ok(status));
    std::rotate(connections_.begin(), connections_.begin() + 1, connections_.end());
  }
  for (const auto& connection : connections_) fell_back = fell_back || !connection->uses_prepared();
  EXPECT_TRUE(fell_back) << "the pooler supports prepared statements; then this test shows little";
}

}  // namespace
}  // namespace outbox::test
