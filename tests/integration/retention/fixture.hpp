// The base of tests on a database whose partitions are so small that a test fills them, and with
// subscriptions whose settlements the test writes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "event/key.hpp"
#include "integration/postgres/harness.hpp"
#include "support/remover.hpp"

namespace outbox::test {

/// Replaces the partitions by small ones, and a last one for all that comes after them. Must be
/// called before the first event.
inline void make_small_partitions(Pg& admin, int partitions, int width) {
  admin.run(R"(DO $$
DECLARE
  part   record;
  start  bigint := 3;
  ending bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
BEGIN
  PERFORM set_config('role', 'outbox_owner', true);
  FOR part IN SELECT name FROM outbox.partitions() WHERE first_xid IS NOT NULL LOOP
    EXECUTE 'DROP TABLE outbox.' || part.name;
  END LOOP;
  FOR number IN 1..)" +
            std::to_string(partitions) +
            R"( LOOP
    ending := CASE number WHEN )" +
            std::to_string(partitions) + " THEN ending + 100000000 ELSE ending + " +
            std::to_string(width) + R"( END;
    EXECUTE format('CREATE TABLE outbox.event_x%s (LIKE outbox.event INCLUDING ALL)', start);
    EXECUTE format('ALTER TABLE outbox.event ATTACH PARTITION outbox.event_x%s FOR VALUES FROM (%L) TO (%L)', start, start, ending);
    start := ending;
  END LOOP;
END $$)");
}

/// Uses up the transaction ids of the newest event's partition.
inline void close_partition(Pg& admin) {
  admin.run(R"(DO $$
DECLARE
  ending bigint := (SELECT p.end_xid::text::bigint FROM outbox.partitions() p
                    WHERE (SELECT max(xid::text::bigint) FROM outbox.event) >= p.first_xid::text::bigint
                      AND (SELECT max(xid::text::bigint) FROM outbox.event) < p.end_xid::text::bigint);
BEGIN
  IF ending > pg_current_xact_id()::text::bigint + 1000000 THEN
    RAISE EXCEPTION 'other sessions have used up the small partitions';
  END IF;
  WHILE pg_current_xact_id()::text::bigint < ending LOOP
    COMMIT;
  END LOOP;
END $$)");
}

class RetentionTest : public PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (IsSkipped()) return;
    admin_.emplace(database_->url());
    make_small_partitions(*admin_, 50, 100);
  }

  std::int32_t subscribe(const std::string& name, Start start = Start::beginning) {
    SubscriptionSpec spec;
    spec.name = name;
    spec.sink = "null";
    spec.start = start;
    EXPECT_TRUE(ok(store_->catalog().value()->apply(spec)));
    return std::stoi(value("SELECT id FROM outbox.subscription WHERE name = '" + name + "'"));
  }

  std::string enqueue() const { return enqueue(*admin_); }
  static std::string enqueue(Pg& connection) {
    return connection.value("SELECT outbox.enqueue('order', '1', 'Placed', '{}')");
  }

  void close_partition() const { test::close_partition(*admin_); }

  /// Appends a settlement which says that everything visible now is done in these lanes.
  void settle(std::int32_t subscription, std::int64_t lanes = -1, int generation = 0) const {
    write(subscription, "settle", lanes, generation, "'3:3:', pg_current_snapshot(), NULL");
  }
  /// Appends a row. `place` is SQL for s1, s2 and position.
  void write(std::int32_t subscription, const std::string& kind, std::int64_t lanes, int generation,
             const std::string& place) const {
    admin_->run(
        "INSERT INTO outbox.settlement (subscription, kind, lanes, generation, l, s1, s2, position) VALUES (" +
        std::to_string(subscription) + ", '" + kind + "', " + std::to_string(lanes) + ", " +
        std::to_string(generation) + ", 0, " + place + ")");
  }

  relay::RetentionPass prune(const relay::RetentionRules& rules = {}) const {
    expect_refusals();
    auto pass = test::prune(*store_, rules);
    EXPECT_TRUE(ok(pass));
    return pass ? *pass : relay::RetentionPass{};
  }

  /// Expects that the server itself refuses to remove what survey() says may not go. Of the pieces
  /// in use only the oldest two are tried.
  void expect_refusals() const {
    const auto pieces = store_->retention().value()->survey({}).value();
    int in_use = 0;
    for (const store::LogPiece& piece : pieces) {
      using State = store::LogPiece::State;
      const bool is_used = piece.state == State::in_use && in_use++ < 2;
      if (piece.end == 0 || (piece.state != State::held && !is_used)) continue;
      Pg connection(database_->url());
      connection.run("BEGIN");
      try {
        EXPECT_EQ(
            connection.value("SELECT outbox.remove_partition('" + std::to_string(piece.first) +
                             "', '" + std::to_string(piece.end) + "', '{}', '{}', '{}', 0, 0)"),
            "f")
            << piece.name;
      } catch (const PgError& error) {
        EXPECT_EQ(error.state(), "55P03");  // the test holds the lock on the fleet
      }
    }
  }

  [[nodiscard]] std::vector<std::string> events() const {
    std::vector<std::string> ids;
    for (const auto& row : admin_->exec("SELECT id FROM outbox.event ORDER BY seq"))
      ids.push_back(*row[0]);
    return ids;
  }

  /// "count hash" of what the ledger says was removed.
  [[nodiscard]] std::string pruned(std::int32_t subscription) const {
    std::uint64_t count = 0;
    std::uint64_t hash = 0;
    for (const auto& row :
         admin_->exec("SELECT events, hash FROM outbox.pruned WHERE subscription = " +
                      std::to_string(subscription))) {
      count += static_cast<std::uint64_t>(std::stoll(*row[0]));
      hash += static_cast<std::uint64_t>(std::stoll(*row[1]));
    }
    return std::to_string(count) + " " + std::to_string(hash);
  }
  static std::string read_sum(const std::vector<std::string>& ids) {
    std::uint64_t hash = 0;
    for (const std::string& id : ids) hash += event::id_hash(EventId::parse(id).value());
    return std::to_string(ids.size()) + " " + std::to_string(hash);
  }

  [[nodiscard]] std::vector<store::Hold> holds() const {
    return store::find_holds(store_->retention().value()->survey({}).value());
  }

  /// One session that all steps share, so that they do not use up many transaction ids.
  mutable std::optional<Pg> admin_;
};

}  // namespace outbox::test
