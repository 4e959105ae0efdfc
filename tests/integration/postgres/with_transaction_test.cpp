// Tests that with_transaction() does everything or nothing, tries again after a conflict, and never
// tries again after a COMMIT whose outcome is unknown.
#include <latch>
#include <outbox/postgres.hpp>
#include <thread>

#include "integration/postgres/harness.hpp"
#include "support/eventually.hpp"
#include "support/own_postgres.hpp"
#include "support/tcp_gate.hpp"

namespace outbox::test {
namespace {

using postgres::Fate;
using postgres::InDoubt;
using postgres::Isolation;
using postgres::Transaction;
using postgres::TransactionOptions;
using postgres::with_transaction;

Event order(const std::string& id = "42") {
  return Event{.aggregate_type = "order",
               .aggregate_id = id,
               .event_type = "OrderPlaced",
               .payload = R"({"total": 12.5})"};
}

/// An application's own exception.
class SqlError : public std::runtime_error {
 public:
  explicit SqlError(const PGresult* result)
      : std::runtime_error(PQresultErrorMessage(result)),
        state(PQresultErrorField(result, PG_DIAG_SQLSTATE)) {}
  std::string state;
};

Exception conflict() {
  Error error;
  error.origin = "pg:40001";
  return Exception(error);
}

/// Runs a statement as an application that uses check() does.
void run(PGconn* connection, const std::string& sql) {
  const PgResult result(PQexec(connection, sql.c_str()));
  postgres::check(connection, result.get(), "sell");
}

void run(const Transaction& tx, const std::string& sql) { run(tx.connection(), sql); }

class WithTransaction : public PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (IsSkipped()) return;
    make_tables(database_->url());
    connection_ = std::make_unique<Pg>(database_->url());
  }
  static void make_tables(const std::string& url) {
    Pg(url).run(
        "CREATE TABLE stock (item text PRIMARY KEY, count int NOT NULL);"
        "INSERT INTO stock VALUES ('a', 10), ('b', 10)");
  }
  [[nodiscard]] PGconn* native() const { return connection_->native(); }
  [[nodiscard]] std::string events() const { return value("SELECT count(*) FROM outbox.event"); }
  [[nodiscard]] std::string stock(const std::string& item) const {
    return value("SELECT count FROM stock WHERE item = '" + item + "'");
  }
  /// Does what another transaction does meanwhile.
  void sell_beside(const std::string& item) {
    connect().run("UPDATE stock SET count = count - 1 WHERE item = '" + item + "'");
  }

  std::unique_ptr<Pg> connection_;
  const TransactionOptions serializable_{.isolation = Isolation::serializable,
                                         .retry = {.first_pause = std::chrono::milliseconds(0)}};
};

TEST_F(WithTransaction, commits_and_returns_what_the_function_returned) {
  const auto id = with_transaction(native(), [&](Transaction& tx) {
    EXPECT_EQ(value("SELECT pg_xact_status('" + std::string(tx.id()) + "'::xid8)"), "in progress");
    run(tx, "UPDATE stock SET count = count - 1 WHERE item = 'a'");
    return tx.enqueue(order());
  });
  EXPECT_EQ(value("SELECT id FROM outbox.event"), id.str());
  EXPECT_EQ(stock("a"), "9");
  with_transaction(native(), [&](Transaction& tx) { (void)tx.enqueue(order()); });
  EXPECT_EQ(events(), "2");
  const auto moved =
      with_transaction(native(), [](Transaction&) { return std::make_unique<int>(7); });
  EXPECT_EQ(*moved, 7);
}

TEST_F(WithTransaction, what_the_function_throws_rolls_back_and_passes_through) {
  int calls = 0;
  const auto failing = [&](Transaction& tx) {
    ++calls;
    run(tx, "UPDATE stock SET count = 0");
    (void)tx.enqueue(order());
    throw std::domain_error("no such customer");
  };
  EXPECT_THROW(with_transaction(native(), failing), std::domain_error);
  EXPECT_THROW(with_transaction(native(), [](Transaction&) { throw 7; }), int);
  try {
    with_transaction(native(), [&](Transaction& tx) { run(tx, "SELECT 1 / 0"); });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Exception& thrown) {
    EXPECT_EQ(thrown.error().origin, "pg:22012");
  }
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(events(), "0");
  EXPECT_EQ(stock("a"), "10");
  EXPECT_EQ(PQtransactionStatus(native()), PQTRANS_IDLE);
}

TEST_F(WithTransaction, a_failed_statement_that_the_function_ignored_is_not_committed) {
  EXPECT_THROW(with_transaction(native(),
                                [&](Transaction& tx) {
                                  (void)tx.enqueue(order());
                                  PQclear(PQexec(tx.connection(), "SELECT 1 / 0"));
                                }),
               Exception);
  EXPECT_EQ(events(), "0");
}

TEST_F(WithTransaction, a_rollback_by_the_function_is_the_end) {
  const int value = with_transaction(native(), [&](Transaction& tx) {
    (void)tx.enqueue(order());
    tx.rollback();
    return 5;
  });
  EXPECT_EQ(value, 5);
  EXPECT_EQ(events(), "0");
}

TEST_F(WithTransaction, calls_that_nest_and_open_transactions_are_refused) {
  const auto nest = [&](Transaction& tx) {
    with_transaction(tx.connection(), [](Transaction&) { FAIL() << "was called"; });
  };
  try {
    with_transaction(native(), nest);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Exception& thrown) {
    EXPECT_EQ(thrown.error().code, Errc::invalid_argument);
  }
  EXPECT_EQ(PQtransactionStatus(native()), PQTRANS_IDLE);
  connection_->run("BEGIN; UPDATE stock SET count = 3");
  EXPECT_THROW(with_transaction(native(), [](Transaction&) {}), Exception);
  EXPECT_EQ(PQtransactionStatus(native()), PQTRANS_INTRANS);
  EXPECT_EQ(connection_->value("SELECT min(count) FROM stock"), "3");
  PQclear(PQexec(native(), "SELECT 1 / 0"));
  EXPECT_THROW(with_transaction(native(), [](Transaction&) {}), Exception);
  EXPECT_EQ(PQtransactionStatus(native()), PQTRANS_INERROR);
  connection_->run("ROLLBACK");
  EXPECT_THROW(with_transaction(nullptr, [](Transaction&) {}), Exception);
}

TEST_F(WithTransaction, options_that_are_not_valid_are_refused) {
  for (const RetryOptions& wrong :
       {RetryOptions{.attempts = 0}, RetryOptions{.first_pause = std::chrono::milliseconds(-1)},
        RetryOptions{.first_pause = std::chrono::seconds(2)}}) {
    EXPECT_THROW(
        with_transaction(native(), [](Transaction&) { FAIL() << "was called"; }, {.retry = wrong}),
        Exception);
  }
}

TEST_F(WithTransaction, a_serialization_failure_at_commit_is_done_again) {
  int calls = 0;
  const auto id = with_transaction(
      native(),
      [&](Transaction& tx) {
        run(tx, "SELECT sum(count) FROM stock");
        // Each of the two transactions reads what the other one writes.
        if (++calls == 1) {
          Pg other(database_->url());
          other.run(
              "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT sum(count) FROM stock;"
              "UPDATE stock SET count = count - 1 WHERE item = 'b'; COMMIT");
        }
        // A change of the stock would fail here already. The event alone makes the conflict appear
        // at COMMIT.
        return tx.enqueue(order(std::to_string(calls)));
      },
      serializable_);
  EXPECT_EQ(value("SELECT string_agg(id::text, ',') FROM outbox.event"), id.str());
}

TEST_F(WithTransaction, a_conflict_in_the_function_is_done_again) {
  int calls = 0;
  with_transaction(
      native(),
      [&](Transaction& tx) {
        run(tx, "SELECT count FROM stock");
        if (++calls <= 2) sell_beside("a");
        (void)tx.enqueue(order(std::to_string(calls)));
        run(tx, "UPDATE stock SET count = count - 5 WHERE item = 'a'");
      },
      serializable_);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(stock("a"), "3");
  EXPECT_EQ(value("SELECT string_agg(aggregate_id, ',') FROM outbox.event"), "3");
}

TEST_F(WithTransaction, an_exception_of_the_application_may_say_that_it_was_a_conflict) {
  TransactionOptions options = serializable_;
  int calls = 0;
  const auto sell = [&](Transaction& tx) {
    run(tx, "SELECT count FROM stock");
    if (++calls == 1) sell_beside("a");
    const PgResult result(PQexec(tx.connection(), "UPDATE stock SET count = 1"));
    if (PQresultStatus(result.get()) != PGRES_COMMAND_OK) throw SqlError(result.get());
  };
  EXPECT_THROW(with_transaction(native(), sell, options), SqlError);
  EXPECT_EQ(calls, 1);
  options.retry.is_conflict = [](const std::exception& thrown) {
    const auto* const error = dynamic_cast<const SqlError*>(&thrown);
    return error != nullptr && postgres::is_conflict(error->state);
  };
  calls = 0;
  with_transaction(native(), sell, options);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(stock("a"), "1");
}

TEST_F(WithTransaction, attempts_are_bounded_and_the_last_conflict_is_thrown) {
  TransactionOptions options = serializable_;
  options.retry.attempts = 3;
  int calls = 0;
  const auto sell = [&](Transaction& tx) {
    ++calls;
    run(tx, "SELECT count FROM stock");
    sell_beside("a");
    run(tx, "UPDATE stock SET count = 0");
  };
  const auto expect_conflict = [&] {
    try {
      with_transaction(native(), sell, options);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Exception& thrown) {
      EXPECT_EQ(thrown.error().origin, "pg:40001");
      EXPECT_EQ(thrown.error().remedy, Remedy::retry_transaction);
    }
  };
  expect_conflict();
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(stock("a"), "7");
  std::stop_source stop;
  options.retry = {.attempts = 1000,
                   .first_pause = std::chrono::hours(1),
                   .longest_pause = std::chrono::hours(1),
                   .stop = stop.get_token()};
  calls = 0;
  std::jthread stopping([&] {
    EXPECT_TRUE(eventually([&] { return stock("a") == "6"; }));
    stop.request_stop();
  });
  expect_conflict();
  EXPECT_EQ(calls, 1);
}

TEST_F(WithTransaction, two_that_deadlock_both_come_through) {
  std::latch both(2);
  std::atomic<int> calls{0};
  const auto seller = [&](const std::string& first, const std::string& second) {
    Pg connection(database_->url());
    connection.run("SET deadlock_timeout = '20ms'");
    bool again = false;
    with_transaction(connection.native(), [&](Transaction& tx) {
      ++calls;
      run(tx, "UPDATE stock SET count = count - 1 WHERE item = '" + first + "'");
      if (!std::exchange(again, true)) both.arrive_and_wait();
      run(tx, "UPDATE stock SET count = count - 1 WHERE item = '" + second + "'");
      (void)tx.enqueue(order(first));
    });
  };
  {
    const std::jthread one(seller, "a", "b");
    const std::jthread other(seller, "b", "a");
  }
  EXPECT_GE(calls, 3);
  EXPECT_EQ(stock("a"), "8");
  EXPECT_EQ(stock("b"), "8");
  EXPECT_EQ(events(), "2");
}

TEST_F(WithTransaction, what_the_function_committed_itself_is_not_done_again) {
  int calls = 0;
  const auto commits_by_hand = [&](Transaction& tx) {
    ++calls;
    run(tx, "UPDATE stock SET count = count - 1; COMMIT");
    sell_beside("a");
    throw conflict();
  };
  EXPECT_THROW(with_transaction(native(), commits_by_hand), Exception);
  const auto commits = [&](Transaction& tx) {
    ++calls;
    tx.commit();
    throw conflict();
  };
  EXPECT_THROW(with_transaction(native(), commits), Exception);
  EXPECT_EQ(calls, 2);
}

TEST_F(WithTransaction, prepared_statements_that_are_gone_cost_one_attempt) {
  const auto place = [&](Transaction& tx) { (void)tx.enqueue(order()); };
  with_transaction(native(), place);
  with_transaction(native(), place);
  int calls = 0;
  with_transaction(native(), [&](Transaction& tx) {
    ++calls;
    run(tx, "DEALLOCATE ALL");
    place(tx);
  });
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(events(), "3");
}

TEST_F(WithTransaction, a_lost_connection_in_the_function_is_no_doubt) {
  try {
    with_transaction(native(), [&](Transaction& tx) {
      (void)tx.enqueue(order());
      connect().run("SELECT pg_terminate_backend(" + std::to_string(PQbackendPID(native())) + ")");
      run(tx, "SELECT 1");
    });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InDoubt&) {
    ADD_FAILURE() << "there was no COMMIT";
  } catch (const Exception& thrown) {
    EXPECT_EQ(thrown.error().remedy, Remedy::reconnect);
  }
  EXPECT_EQ(events(), "0");
}

class InDoubtTest : public WithTransaction {
 protected:
  /// Places an order on that connection. `before_commit` runs when all but COMMIT is done.
  InDoubt place(PGconn* connection, const std::function<void()>& before_commit) {
    int calls = 0;
    try {
      with_transaction(connection, [&](Transaction& tx) {
        ++calls;
        run(tx, "UPDATE stock SET count = count - 1 WHERE item = 'a'");
        id_ = tx.enqueue(order());
        before_commit();
      });
    } catch (const InDoubt& thrown) {
      EXPECT_EQ(calls, 1);
      EXPECT_EQ(thrown.error().effect, Effect::unknown);
      EXPECT_EQ(thrown.error().remedy, Remedy::reconnect);
      EXPECT_THAT(thrown.what(), ::testing::HasSubstr(thrown.transaction()));
      EXPECT_THAT(thrown.what(), ::testing::HasSubstr("find_fate"));
      EXPECT_EQ(thrown.mark()->event, id_);
      return thrown;
    }
    throw std::runtime_error("nothing was in doubt");
  }
  /// The fate of the transaction, asked on another connection. At first the server may not have
  /// noticed the loss.
  static Fate fate(const std::string& url, const InDoubt& doubt) {
    Pg other(url);
    Fate found = Fate::in_progress;
    EXPECT_TRUE(eventually([&] {
      found = postgres::find_fate(other.native(), doubt);
      return found != Fate::in_progress;
    }));
    return found;
  }
  EventId id_;
  [[nodiscard]] std::string url_through(const TcpGate& gate) const {
    return "postgresql://postgres@127.0.0.1:" + std::to_string(gate.port()) + "/" +
           database_->name();
  }
  [[nodiscard]] int port() const { return std::stoi(PQport(native())); }
};

TEST_F(InDoubtTest, a_commit_whose_answer_is_lost_has_happened) {
  TcpGate gate(port());
  Pg connection(url_through(gate));
  std::jthread cutting;
  const InDoubt doubt = place(connection.native(), [&] {
    gate.set(TcpGate::Mode::answers_lost);
    cutting = std::jthread([&] {
      EXPECT_TRUE(eventually([&] { return events() == "1"; }));
      gate.set(TcpGate::Mode::open);
    });
  });
  EXPECT_EQ(fate(database_->url(), doubt), Fate::committed);
  EXPECT_EQ(value("SELECT id FROM outbox.event"), id_.str());
  EXPECT_EQ(stock("a"), "9");
}

TEST_F(InDoubtTest, a_commit_that_did_not_reach_the_server_has_not_happened) {
  TcpGate gate(port());
  Pg connection(url_through(gate));
  const InDoubt doubt = place(connection.native(), [&] { gate.cut(); });
  EXPECT_EQ(fate(database_->url(), doubt), Fate::rolled_back);
  EXPECT_EQ(events(), "0");
  EXPECT_EQ(stock("a"), "10");
}

TEST_F(InDoubtTest, a_server_that_is_killed_in_commit_knows_when_it_is_back) {
  OwnPostgres server({"autovacuum = off"});  // it takes transaction ids
  const auto store = open_at(server.url());
  ASSERT_TRUE(ok(store->migrate()));
  make_tables(server.url());
  // The deferred trigger makes COMMIT wait for a lock.
  Pg(server.url())
      .run(
          "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS "
          "$$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$;"
          "CREATE CONSTRAINT TRIGGER wait AFTER UPDATE ON stock DEFERRABLE INITIALLY DEFERRED "
          "FOR EACH ROW EXECUTE FUNCTION wait()");
  Pg holder(server.url());
  holder.run("SELECT pg_advisory_lock(1)");
  Pg connection(server.url());
  std::jthread killing;
  const InDoubt doubt = place(connection.native(), [&] {
    killing = std::jthread([&] {
      EXPECT_TRUE(eventually([&] {
        return holder.value(
                   "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") ==
               "1";
      }));
      server.stop_immediate();
    });
  });
  killing.join();
  server.start();
  EXPECT_EQ(fate(server.url(), doubt), Fate::rolled_back);
  // A crash forgets what was not on disk, so that the id is given out again.
  Pg later(server.url());
  while (std::stoll(later.value("SELECT pg_current_xact_id()")) < std::stoll(doubt.transaction())) {
  }
  try {
    EXPECT_EQ(postgres::find_fate(later.native(), doubt), Fate::rolled_back);
  } catch (const Exception& thrown) {
    EXPECT_EQ(thrown.error().code, Errc::not_found) << "another transaction has that id";
  }
  EXPECT_EQ(Pg(server.url()).value("SELECT count(*) FROM outbox.event"), "0");
}

TEST_F(InDoubtTest, what_cannot_be_told_is_an_error) {
  const auto doubt_about = [&](const std::string& transaction, std::optional<InDoubt::Mark> mark) {
    return InDoubt({}, transaction, std::move(mark));
  };
  Pg other(database_->url());
  other.run("BEGIN");
  const std::string open = other.value("SELECT pg_current_xact_id()");
  EXPECT_EQ(postgres::find_fate(native(), doubt_about(open, {})), Fate::in_progress);
  EXPECT_THROW((void)postgres::find_fate(other.native(), doubt_about(open, {})), Exception)
      << "in a transaction";
  other.run("ROLLBACK");
  EXPECT_EQ(postgres::find_fate(native(), doubt_about(open, {})), Fate::rolled_back);
  const std::string committed = other.value("SELECT pg_current_xact_id()");
  const auto find_code = [&](const InDoubt& doubt) {
    try {
      (void)postgres::find_fate(native(), doubt);
    } catch (const Exception& thrown) {
      return thrown.error().code;
    }
    return Errc::internal;
  };
  EXPECT_EQ(find_code(doubt_about(committed, {})), Errc::not_found);
  EXPECT_EQ(find_code(doubt_about(committed, InDoubt::Mark{"outbox", EventId::generate()})),
            Errc::not_found);
  EXPECT_EQ(PQtransactionStatus(native()), PQTRANS_IDLE);
}

}  // namespace
}  // namespace outbox::test
