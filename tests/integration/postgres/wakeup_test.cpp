// Tests the armed wake-up: no commit is missed, and a relay that hangs while armed does not slow
// writers down.
#include <atomic>
#include <functional>
#include <random>
#include <thread>

#include "integration/postgres/harness.hpp"
#include "support/eventually.hpp"

namespace outbox::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Wake = store::Wakeup::Wake;

class PostgresWakeup : public PostgresTest {
 protected:
  [[nodiscard]] std::unique_ptr<store::Wakeup> wakeup(bool armed = true) const {
    auto made = store_->wakeup({.armed = armed});
    EXPECT_TRUE(ok(made));
    return made ? std::move(*made) : nullptr;
  }
  static Wake wait(store::Wakeup& wakeup, milliseconds longest) {
    auto woken = wakeup.wait(longest);
    EXPECT_TRUE(ok(woken));
    return woken.value_or(Wake::interrupted);
  }
  using Act = std::function<void(store::Wakeup& sleeper)>;
  /// Arms a wake-up, runs `act`, and returns what ends the wait. Tries again if the session is
  /// gone: the server ends an armed session that is silent for 3 s, which a busy machine can cause.
  [[nodiscard]] Wake woken_by(const Act& act, milliseconds longest) const {
    for (int attempt = 1;; ++attempt) {
      const auto sleeper = wakeup();
      EXPECT_TRUE(sleeper->arm().value());
      act(*sleeper);
      auto woken = sleeper->wait(longest);
      const bool again = !woken && woken.error().remedy == Remedy::reconnect && attempt < 5;
      if (again) continue;
      EXPECT_TRUE(ok(woken));
      return woken.value_or(Wake::interrupted);
    }
  }
  static void enqueue(Pg& connection) {
    (void)connection.exec("SELECT outbox.enqueue('a', 'b', 'c', '{}')");
  }
};

TEST_F(PostgresWakeup, a_commit_wakes) {
  Pg writer(database_->url());
  const auto insert = [&](store::Wakeup&) {
    (void)writer.exec(
        "INSERT INTO outbox.new_event (aggregate_type, event_type, payload) VALUES ('a', 'b', '1')");
  };
  EXPECT_EQ(woken_by(insert, seconds(30)), Wake::notified);
}

TEST_F(PostgresWakeup, while_one_relay_is_armed_the_others_are_woken_too) {
  Pg writer(database_->url());
  std::unique_ptr<store::Wakeup> other;
  const auto insert = [&](store::Wakeup& armed) {
    other = wakeup();
    EXPECT_TRUE(other->arm().value());
    EXPECT_TRUE(armed.arm().value());
    enqueue(writer);
  };
  EXPECT_EQ(woken_by(insert, seconds(30)), Wake::notified);
  EXPECT_EQ(wait(*other, seconds(30)), Wake::notified);
  ASSERT_TRUE(ok(other->disarm()));
  const std::string armed =
      "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' "
      "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
  ASSERT_TRUE(eventually([&] { return value(armed) == "0"; })) << "the first one's session ends";
  // The first session is gone, but a writer that will not notify is in flight. Therefore the other
  // one cannot be armed yet, nor does it listen.
  (void)writer.exec("BEGIN; SELECT outbox.enqueue('a', 'b', 'c', '{}')");
  EXPECT_FALSE(other->arm().value());
  (void)writer.exec("COMMIT");
  EXPECT_TRUE(other->arm().value());
}

TEST_F(PostgresWakeup, nothing_does_not_wake) {
  EXPECT_EQ(woken_by([](store::Wakeup&) {}, milliseconds(20)), Wake::timeout);
}

TEST_F(PostgresWakeup, a_rollback_does_not_wake) {
  Pg writer(database_->url());
  const auto roll_back = [&](store::Wakeup&) {
    (void)writer.exec("BEGIN; SELECT outbox.enqueue('a', 'b', 'c', '{}'); ROLLBACK");
  };
  EXPECT_EQ(woken_by(roll_back, milliseconds(200)), Wake::timeout);
}

TEST_F(PostgresWakeup, cannot_be_armed_while_a_writer_is_in_flight) {
  const auto sleeper = wakeup();
  Pg writer(database_->url());
  (void)writer.exec("BEGIN; SELECT outbox.enqueue('a', 'b', 'c', '{}')");
  EXPECT_FALSE(sleeper->arm().value());
  (void)writer.exec("COMMIT");
  EXPECT_TRUE(sleeper->arm().value());
}

TEST_F(PostgresWakeup, writers_notify_nobody_who_is_awake) {
  Pg writer(database_->url());
  const auto enqueue_while_awake = [&](store::Wakeup& sleeper) {
    EXPECT_TRUE(ok(sleeper.disarm()));
    enqueue(writer);
    EXPECT_TRUE(sleeper.arm().value());
  };
  EXPECT_EQ(woken_by(enqueue_while_awake, milliseconds(200)), Wake::timeout);
}

TEST_F(PostgresWakeup, an_interruption_ends_the_wait_from_any_thread) {
  for (const bool armed : {true, false}) {
    const auto sleeper = wakeup(armed);
    EXPECT_EQ(sleeper->arm().value(), armed);
    std::jthread other([&] { sleeper->interrupt(); });
    EXPECT_EQ(wait(*sleeper, seconds(30)), Wake::interrupted);
    EXPECT_EQ(wait(*sleeper, milliseconds(1)), Wake::timeout);
  }
}

TEST_F(PostgresWakeup, stays_armed_longer_than_the_servers_patience) {
  Pg writer(database_->url());
  const auto sleep_and_enqueue = [&](store::Wakeup& sleeper) {
    const auto slept = sleeper.wait(milliseconds(4500));
    EXPECT_TRUE(!slept || *slept == Wake::timeout);
    enqueue(writer);
  };
  EXPECT_EQ(woken_by(sleep_and_enqueue, seconds(30)), Wake::notified);
}

TEST_F(PostgresWakeup, one_that_was_stopped_while_armed_loses_the_lock_soon) {
  Pg other(database_->url());
  const char* const held =
      "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND mode = 'ExclusiveLock' "
      "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
  // Nothing waits, as if the process had been stopped. The session may be over before the test
  // looks, so that it tries several times.
  std::unique_ptr<store::Wakeup> sleeper;
  bool seen = false;
  for (int attempt = 0; attempt < 5 && !seen; ++attempt) {
    sleeper = wakeup();
    ASSERT_TRUE(sleeper->arm().value());
    seen = other.value(held) == "1";
  }
  EXPECT_TRUE(seen);
  EXPECT_TRUE(eventually([&] { return other.value(held) == "0"; }));
  auto woken = sleeper->wait(seconds(60));
  ASSERT_FALSE(woken);
  EXPECT_EQ(woken.error().remedy, Remedy::reconnect);
}

TEST_F(PostgresWakeup, a_session_that_is_not_armed_may_be_silent) {
  const auto sleeper = wakeup();
  ASSERT_TRUE(sleeper->arm().value());
  ASSERT_TRUE(ok(sleeper->disarm()));
  // An armed session may be silent for 3 s. A disarmed one may be silent for longer.
  std::this_thread::sleep_for(milliseconds(3600));
  EXPECT_TRUE(sleeper->arm().value());
}

TEST_F(PostgresWakeup, prepared_transactions_need_it_off) {
  Pg writer(database_->url());
  OUTBOX_NEEDS_PREPARED_TRANSACTIONS(writer);
  const std::string name = "'" + database_->name() + "'";  // unique on the server
  const auto sleeper = wakeup();
  ASSERT_TRUE(sleeper->arm().value());
  (void)writer.exec("BEGIN; SELECT outbox.enqueue('a', 'b', 'c', '{}')");
  EXPECT_EQ(find_sqlstate(writer, "PREPARE TRANSACTION " + name), "0A000");
  (void)writer.exec(
      "ROLLBACK; SET outbox.wake = off; BEGIN; SELECT outbox.enqueue('a', 'b', 'c', '{}')");
  EXPECT_EQ(find_sqlstate(writer, "PREPARE TRANSACTION " + name), "");
  (void)writer.exec("COMMIT PREPARED " + name);
  EXPECT_EQ(value("SELECT count(*) FROM outbox.event"), "1");
}

TEST_F(PostgresWakeup, off_is_off_in_every_spelling) {
  const auto locks = [&](const char* setting) {
    Pg writer(database_->url());
    (void)writer.exec(std::string("SET outbox.wake = '") + setting +
                      "'; BEGIN; SELECT outbox.enqueue('a', 'b', 'c', '{}')");
    return writer.value(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()");
  };
  for (const char* off : {"off", "OFF", "false", "no", "0"}) EXPECT_EQ(locks(off), "0") << off;
  for (const char* on : {"on", "", "true", "1"}) EXPECT_EQ(locks(on), "1") << on;
}

TEST_F(PostgresWakeup, behind_a_pooler_it_is_never_armed) {
  OUTBOX_NEEDS("OUTBOX_TEST_PGBOUNCER", "pgbouncer in transaction mode");
  const auto pooled =
      open_at(url_of_database(*environment("OUTBOX_TEST_PGBOUNCER"), database_->name()));
  auto sleeper = pooled->wakeup({});
  ASSERT_TRUE(ok(sleeper));
  EXPECT_FALSE((*sleeper)->arm().value());
  EXPECT_EQ(wait(**sleeper, milliseconds(10)), Wake::timeout);
}

/// Stops the writers' threads also when a check ends the test.
class StopAtEnd {
 public:
  explicit StopAtEnd(std::atomic<bool>& stop) : stop_(stop) {}
  StopAtEnd(const StopAtEnd&) = delete;
  StopAtEnd& operator=(const StopAtEnd&) = delete;
  ~StopAtEnd() { stop_ = true; }

 private:
  std::atomic<bool>& stop_;
};

/// Writers commit at random moments while a reader polls, arms, polls once more and sleeps, as the
/// relay does. An event without a notification would be found only when the sleep is over.
TEST_F(PostgresWakeup, no_commit_is_missed) {
  std::atomic<bool> stop{false};
  std::atomic<std::int64_t> committed{0};
  std::vector<std::jthread> writers;
  for (unsigned seed = 1; seed <= 3; ++seed) {
    writers.emplace_back([&, seed] {
      Pg writer(database_->url());
      std::mt19937 random(seed);
      while (!stop) {
        (void)writer.exec("BEGIN");
        enqueue(writer);
        if (random() % 4 == 0)
          std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
        (void)writer.exec("COMMIT");
        ++committed;
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));
      }
    });
  }
  const StopAtEnd stop_writers(stop);
  Pg reader(database_->url());
  const auto visible = [&] {
    return std::stoll(reader.value("SELECT count(*) FROM outbox.event"));
  };
  const auto sleeper = wakeup();
  int slept = 0;
  const auto from = std::chrono::steady_clock::now();
  const auto lasts = [&](seconds length) {
    return std::chrono::steady_clock::now() < from + length * soak_factor();
  };
  while (lasts(seconds(6)) || (slept <= 50 && lasts(seconds(120)))) {
    auto armed = sleeper->arm();
    ASSERT_TRUE(ok(armed));
    if (!*armed) continue;
    const auto seen = visible();
    // After a long time without commits, the first one may come between the end of the sleep and
    // this check.
    if (wait(*sleeper, milliseconds(2000)) == Wake::timeout && visible() != seen) {
      EXPECT_EQ(wait(*sleeper, seconds(30)), Wake::notified) << "committed without a notification";
    }
    ++slept;
    ASSERT_TRUE(ok(sleeper->disarm()));
  }
  stop = true;
  writers.clear();
  EXPECT_GT(slept, 50);
  EXPECT_EQ(visible(), committed);
}

}  // namespace
}  // namespace outbox::test
