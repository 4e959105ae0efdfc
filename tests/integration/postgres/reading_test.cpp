// Tests what a reader and a settler refuse: false marks, another server, a sequence that was set
// back.
#include "integration/postgres/harness.hpp"
#include "store/postgres/parts.hpp"
#include "store/settlement.hpp"
#include "support/eventually.hpp"

namespace outbox::test {
namespace {

using ::testing::HasSubstr;

class PostgresReading : public PostgresTest {
 protected:
  [[nodiscard]] std::unique_ptr<store::LogReader> reader() const {
    auto reader = store_->reader();
    EXPECT_TRUE(ok(reader));
    return reader ? std::move(*reader) : nullptr;
  }
  static Result<store::Page> page(store::LogReader& reader, const std::string& s1) {
    if (Status status = reader.start({.cursor = {.s1 = s1}}); !status)
      return tl::unexpected<Error>(status.error());
    return reader.finish();
  }
  void subscribe() const {
    ASSERT_TRUE(ok((*store_->catalog())->apply({.name = "mails", .sink = "null"})));
  }
  void enqueue(int count) const {
    (void)connect().exec("SELECT outbox.enqueue('a', i::text, 'E', '1') FROM generate_series(1, " +
                         std::to_string(count) + ") i");
  }
  [[nodiscard]] std::string settlements() const {
    return value("SELECT count(*) FROM outbox.settlement WHERE kind = 'settle'");
  }
  static store::Settlement settlement(const std::string& s2) {
    store::Settlement row;
    row.subscription = 1;
    row.config_version = 1;
    row.s1 = "3:3:";
    row.s2 = s2;
    row.bound = 7;
    return row;
  }
};

TEST_F(PostgresReading, a_claim_is_no_mark) {
  subscribe();
  // The claim's transaction takes its id first, and later reads the settlement that it repeats.
  Pg claim(database_->url());
  (void)claim.exec("BEGIN; SELECT pg_current_xact_id()");
  (void)connect().exec("SELECT pg_current_xact_id()");
  const std::string s1 = value("SELECT pg_current_snapshot()");
  Pg late(database_->url());
  (void)late.exec("BEGIN; SELECT outbox.enqueue('a', 'late', 'E', '1')");
  enqueue(5);
  (void)claim.exec(
      "INSERT INTO outbox.settlement (subscription, kind, lanes, generation, s1, l) VALUES (1, 'claim', -1, 1, '" +
      s1 + "', pg_sequence_last_value('outbox.event_seq')); COMMIT");
  (void)late.exec("COMMIT");
  const auto read = reader();
  ASSERT_TRUE(ok(read->begin({})));
  auto all = page(*read, s1);
  ASSERT_TRUE(ok(all));
  ASSERT_EQ(all->events.size(), 6U);
  EXPECT_EQ(all->events.front().aggregate_id, "late");
}

TEST_F(PostgresReading, a_big_event_deleted_under_the_reader_is_named_and_the_next_read_goes_on) {
  subscribe();
  Pg admin(database_->url());
  (void)admin.exec(
      "SELECT outbox.enqueue('a', i::text, 'E', repeat('x', 20000), content_type => 'text/plain') FROM generate_series(1, 3) i");
  const auto read = reader();
  ASSERT_TRUE(ok(read->begin({})));
  const std::string before = admin.value("SELECT clock_timestamp()");
  ASSERT_TRUE(ok(read->start({.cursor = {.s1 = "3:3:"}})));
  ASSERT_TRUE(eventually([&] {
    return admin.value(
               "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
               "AND application_name LIKE '% reader' AND state = 'idle' AND query_start > $1::timestamptz",
               before) == "1";
  })) << "the page was not read";
  (void)admin.exec("DELETE FROM outbox.event WHERE seq = 2");
  const auto refused = read->finish();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().remedy, Remedy::reconnect);
  EXPECT_THAT(refused.error().message, HasSubstr("1 event was deleted"));
  EXPECT_THAT(refused.error().message, HasSubstr("seq 2"));
  const auto next = reader();
  ASSERT_TRUE(ok(next->begin({})));
  auto rest = page(*next, "3:3:");
  ASSERT_TRUE(ok(rest));
  ASSERT_EQ(rest->events.size(), 2U);
  EXPECT_EQ(rest->events.back().payload, std::string(20000, 'x'));
}

TEST_F(PostgresReading, big_headers_are_left_out_of_the_page_and_their_size_is_known) {
  Pg admin(database_->url());
  for (const char* storage : {"EXTENDED", "EXTERNAL"}) {
    (void)admin.exec(
        std::string(
            "DO $$ DECLARE p regclass; BEGIN FOR p IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'outbox.event'::regclass LOOP "
            "EXECUTE format('ALTER TABLE %s ALTER headers SET STORAGE ") +
        storage + "', p); END LOOP; END $$");
    (void)admin.exec(
        "SELECT outbox.enqueue('a', n::text, 'E', '1', headers => jsonb_build_object('h', repeat('y', n))) "
        "FROM unnest(ARRAY[10, 1000, 16000, 17000, 60000]) n");
  }
  std::string sql = store::postgres::Queries("outbox").present_lean.sql;
  (void)admin.exec("PREPARE page AS " + sql);
  const auto rows = admin.exec("EXECUTE page('3', 0, 100, '{}')");
  ASSERT_EQ(rows.size(), 10U);
  for (const PgRow& row : rows) {
    const std::size_t size = std::stoull(*row[3]);
    EXPECT_EQ(row[8].has_value(), size <= 16000) << size;
    EXPECT_EQ(*row[6], std::to_string(1 + (size <= 16000 ? 0 : size + 9))) << size;
  }
}

TEST_F(PostgresReading, what_another_server_knows_more_of_is_not_settled_here) {
  subscribe();
  auto progress = store_->progress();
  ASSERT_TRUE(ok(progress));
  const std::string now = value("SELECT pg_current_snapshot()");
  const std::string ahead = value(
      "SELECT x || ':' || x || ':' FROM (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint "
      "+ 1000000 AS x) s");
  const std::vector<store::Settlement> rows{settlement(now), settlement(ahead), settlement(now)};
  const auto refused = (*progress)->append({.settlements = rows}, store::Durability::eventual);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().remedy, Remedy::reconnect);
  EXPECT_EQ(refused.error().effect, Effect::none);
  EXPECT_THAT(refused.error().message, HasSubstr("not the server that was read from"));
  EXPECT_EQ(settlements(), "0");
  EXPECT_TRUE(ok(
      (*progress)->append({.settlements = std::span(rows).first(1)}, store::Durability::eventual)));
  EXPECT_EQ(settlements(), "1");
}

TEST_F(PostgresReading, what_was_read_before_a_restart_is_not_settled_after_it) {
  subscribe();
  const auto book = std::make_shared<store::postgres::MarkBook>();
  auto connection = store::postgres::Connection::open({.url = database_->url()}, "test");
  ASSERT_TRUE(ok(connection));
  const auto progress = store::postgres::make_progress(std::move(*connection), book);
  book->read_from(12345);
  const store::Settlement row = settlement(value("SELECT pg_current_snapshot()"));
  const auto refused =
      progress->append({.settlements = std::span(&row, 1)}, store::Durability::flushed);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().remedy, Remedy::reconnect);
  EXPECT_EQ(refused.error().effect, Effect::none);
  EXPECT_EQ(settlements(), "0");
  EXPECT_EQ(book->greatest(), 0) << "a row that was refused is no mark";
  book->clear();
  EXPECT_TRUE(
      ok(progress->append({.settlements = std::span(&row, 1)}, store::Durability::flushed)));
  EXPECT_EQ(book->greatest(), 7);
}

TEST_F(PostgresReading, the_settler_knows_the_readers_server) {
  subscribe();
  const auto read = reader();
  ASSERT_TRUE(ok(read->begin({})));
  auto progress = store_->progress();
  ASSERT_TRUE(ok(progress));
  const store::Settlement row = settlement(value("SELECT pg_current_snapshot()"));
  EXPECT_TRUE(
      ok((*progress)->append({.settlements = std::span(&row, 1)}, store::Durability::flushed)));
}

TEST_F(PostgresReading, the_sequence_is_never_read_too_high) {
  // While nextval() is at work, the tuple of the sequence shows the value that is logged in
  // advance.
  const std::jthread busy([this](const std::stop_token& stop) {
    Pg writer(database_->url());
    while (!stop.stop_requested())
      (void)writer.exec("SELECT nextval('outbox.event_seq') FROM generate_series(1, 10000)");
  });
  (void)connect().exec(R"(
    DO $$ DECLARE
      told   bigint;
      next   bigint := 0;
      which  bigint;
    BEGIN
      FOR i IN 1..100000 LOOP
        EXECUTE $sql$)" +
                       store::postgres::Queries("outbox").sequence.sql + R"($sql$ INTO told, which;
        IF told < next THEN RAISE EXCEPTION 'went back: % after %', told, next; END IF;
        next := nextval('outbox.event_seq');
        IF told >= next THEN RAISE EXCEPTION 'told %, and the next one is %', told, next; END IF;
      END LOOP;
    END $$)");
}

TEST_F(PostgresReading, a_sequence_that_was_set_back_is_refused_at_the_start) {
  enqueue(20);
  ASSERT_TRUE(ok(reader()->begin({})));
  (void)connect().exec("TRUNCATE outbox.event RESTART IDENTITY");
  enqueue(3);
  const Status refused = reader()->begin({});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::corrupt);
  EXPECT_EQ(refused.error().remedy, Remedy::fix);
  EXPECT_THAT(refused.error().message, HasSubstr("\"outbox\".event_seq stands at 3"));
  EXPECT_THAT(refused.error().message, HasSubstr("had reached 20"));
  EXPECT_THAT(refused.error().hint, HasSubstr("SELECT setval('\"outbox\".event_seq', 20)"));
  // This is the repair of docs/stores/postgres.md.
  const std::string s1 = value("SELECT pg_current_snapshot()");
  enqueue(2);
  (void)connect().exec(R"(
    BEGIN;
    SELECT setval('outbox.event_seq', 20);
    UPDATE outbox.event e SET seq = n.seq
    FROM (SELECT ctid, tableoid, nextval('outbox.event_seq') AS seq
          FROM (SELECT ctid, tableoid FROM outbox.event
                WHERE seq <= 20 AND xid > (SELECT w FROM outbox.settlement WHERE l = 20 AND kind <> 'claim' ORDER BY w LIMIT 1)
                ORDER BY seq) o) n
    WHERE e.ctid = n.ctid AND e.tableoid = n.tableoid;
    COMMIT)");
  const auto read = reader();
  ASSERT_TRUE(ok(read->begin({})));
  auto late = page(*read, s1);
  ASSERT_TRUE(ok(late));
  ASSERT_EQ(late->events.size(), 2U);
  EXPECT_EQ(late->events.front().seq, 24);
  EXPECT_EQ(late->events.back().aggregate_id, "2");
}

TEST_F(PostgresReading, a_sequence_that_is_set_back_under_a_reader_is_refused) {
  enqueue(20);
  const auto read = reader();
  ASSERT_TRUE(ok(read->begin({})));
  const std::string s1 = value("SELECT pg_current_snapshot()");
  ASSERT_TRUE(ok(page(*read, s1)));
  (void)connect().exec("SELECT setval('outbox.event_seq', 4)");
  enqueue(1);
  auto refused = page(*read, s1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::corrupt);
  EXPECT_THAT(refused.error().message, HasSubstr("stands at 5"));
}

TEST_F(PostgresReading, tables_that_were_restored_under_a_reader_are_not_read_on) {
  const auto read = reader();
  ASSERT_TRUE(ok(read->begin({})));
  ASSERT_TRUE(ok(page(*read, "3:3:")));
  // A dump has the row of the unlogged table, too.
  (void)connect().exec(
      "ALTER TABLE outbox.incarnation RENAME TO dumped; "
      "CREATE UNLOGGED TABLE outbox.incarnation (LIKE outbox.dumped INCLUDING ALL); "
      "INSERT INTO outbox.incarnation SELECT * FROM outbox.dumped");
  const auto refused = page(*read, "3:3:");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().remedy, Remedy::reconnect);
}

TEST_F(PostgresReading, an_event_beyond_the_sequence_is_refused) {
  const auto read = reader();
  ASSERT_TRUE(ok(read->begin({})));
  enqueue(5);
  // The sequence is as if it had never been called, so that it gives no bound.
  (void)connect().exec("ALTER SEQUENCE outbox.event_seq RESTART");
  auto refused = page(*read, "3:3:");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::corrupt);
  EXPECT_THAT(refused.error().message, HasSubstr("stands at 0, and had reached 5"));
}

TEST_F(PostgresReading, a_position_of_the_log_that_may_not_be_asked_for_forces_every_barrier) {
  const std::string user = database_->name() + "_relay";
  Pg admin(database_->url());
  (void)admin.exec("CREATE ROLE \"" + user + "\" LOGIN IN ROLE outbox_relay");
  std::string url = database_->url();
  url.replace(url.find("postgres@"), 9, user + "@");
  for (const char* function : {"pg_current_wal_insert_lsn()", "pg_current_wal_flush_lsn()"}) {
    (void)admin.exec(std::string("REVOKE EXECUTE ON FUNCTION ") + function + " FROM PUBLIC");
    const auto store = open_at(url);
    {
      auto read = store->reader();
      ASSERT_TRUE(ok(read));
      ASSERT_TRUE(ok((*read)->begin({}))) << function;
      EXPECT_TRUE(ok(page(**read, "3:3:"))) << function;
      EXPECT_TRUE(ok((*read)->wait_durable())) << function;
    }
    (void)admin.exec(std::string("GRANT EXECUTE ON FUNCTION ") + function + " TO PUBLIC");
  }
  (void)admin.exec("DROP ROLE \"" + user + "\"");
}

/// Reads everything, and looks at the sessions that read ahead after each page.
TEST_F(PostgresReading, a_large_backlog_is_read_ahead_until_it_is_small) {
  enqueue(30000);
  const auto sessions = [admin = std::make_shared<Pg>(database_->url())] {
    return admin->value(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
        "AND application_name LIKE '% read-ahead'");
  };
  const auto read = reader();
  ASSERT_TRUE(ok(read->begin({})));
  store::Cursor cursor{.s1 = "3:3:"};
  std::size_t events = 0;
  bool seen = false;
  for (bool drained = false; !drained;) {
    ASSERT_TRUE(ok(read->start({.cursor = cursor, .rows = 1000})));
    const auto page = read->finish();
    ASSERT_TRUE(ok(page));
    ASSERT_TRUE(ok(read->wait_durable()));
    events += page->events.size();
    drained = page->drained;
    cursor = page->end();
    seen = seen || sessions() == "1";
  }
  EXPECT_EQ(events, 30000U);
  EXPECT_TRUE(seen);
  EXPECT_TRUE(eventually([&] { return sessions() == "0"; }));
}

TEST_F(PostgresReading, without_a_connection_for_it_nothing_is_read_ahead_and_nothing_is_missing) {
  enqueue(30000);
  const auto read = reader();
  ASSERT_TRUE(ok(read->begin({})));
  Pg admin(url_of_database(database_->url(), "postgres"));
  const std::string database = "ALTER DATABASE " + database_->name();
  (void)admin.exec(database + " ALLOW_CONNECTIONS false");
  store::Cursor cursor{.s1 = "3:3:"};
  std::size_t events = 0;
  for (bool drained = false; !drained;) {
    ASSERT_TRUE(ok(read->start({.cursor = cursor, .rows = 1000})));
    const auto page = read->finish();
    ASSERT_TRUE(ok(page));
    events += page->events.size();
    drained = page->drained;
    cursor = page->end();
  }
  EXPECT_EQ(events, 30000U);
  (void)admin.exec(database + " ALLOW_CONNECTIONS true");
}

}  // namespace
}  // namespace outbox::test
