// Tests the plans of the reading statements, with 90 partitions and any statistics. They scan only
// the indexes on (seq) and (xid, seq), prune partitions, and read no more rows than a page needs.
#include <nlohmann/json.hpp>
#include <set>

#include "integration/relay/harness.hpp"
#include "store/postgres/queries.hpp"
#include "support/postgres_database.hpp"

namespace outbox::test {
namespace {

using nlohmann::json;

constexpr int kPartitions = 90;
constexpr int kRows = 45000;
constexpr int kPage = 100;

enum class Statistics { none, stale, fresh };

/// What the plan did to the log.
struct Work {
  std::set<std::string> wrong_scans;  ///< Scans of the log other than index scans.
  std::set<std::string> opened;  ///< Partitions that the plan could not leave out before it ran.
  std::set<std::string> partitions;  ///< Partitions that were scanned.
  double rows{0};                    ///< Rows that were read from the log, matching or not.
};

void walk(const json& node, Work& work) {
  const double loops = node.value("Actual Loops", 0.0);
  const std::string relation = node.value("Relation Name", "");
  const bool of_the_log = relation.rfind("event", 0) == 0 && relation != "event_seq";
  if (of_the_log) work.opened.insert(relation);
  if (of_the_log && loops > 0) {
    work.partitions.insert(relation);
    work.rows +=
        loops * (node.value("Actual Rows", 0.0) + node.value("Rows Removed by Filter", 0.0) +
                 node.value("Rows Removed by Index Recheck", 0.0));
    const std::string type = node.value("Node Type", "");
    const std::string index = node.value("Index Name", "");
    const bool by_index = (type == "Index Scan" || type == "Index Only Scan") &&
                          index.find("seq_idx") != std::string::npos;
    if (!by_index) work.wrong_scans.insert(type + " on " + relation + " " + index);
  }
  if (node.contains("Plans")) {
    for (const json& child : node["Plans"]) walk(child, work);
  }
}

class ReadingPlans : public ::testing::TestWithParam<Statistics> {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_POSTGRES();
    database_ = std::make_unique<PostgresDatabase>();
    connection_ = std::make_unique<Pg>(database_->url());
    // The log has many transactions in 90 partitions. All of them have ended.
    connection_->exec("SELECT pg_current_xact_id() FROM generate_series(1, 1)");
    top_ = std::stoll(connection_->value("SELECT pg_snapshot_xmin(pg_current_snapshot())"));
    width_ = std::max<std::int64_t>(1, (top_ - 3) / kPartitions);
    make_partitions();
    if (GetParam() == Statistics::stale) connection_->exec("ANALYZE outbox.event");
    connection_->exec(
        "INSERT INTO outbox.event (xid, lane, id, aggregate_type, aggregate_id, event_type, payload, headers) "
        "SELECT (3 + (n * (" +
        std::to_string(top_) + "::bigint - 4)) / " + std::to_string(kRows) +
        ")::text::xid8, "
        "n % 64, gen_random_uuid(), 'Order', n % 100, 'OrderPlaced', repeat('x', 200)::bytea, '{}' "
        "FROM generate_series(0, " +
        std::to_string(kRows - 1) + ") n");
    if (GetParam() == Statistics::fresh) connection_->exec("ANALYZE outbox.event");
  }

  void make_partitions() {
    for (
        const PgRow& row : connection_->exec(
            "SELECT inhrelid::regclass FROM pg_inherits "
            "WHERE inhparent = 'outbox.event'::regclass AND inhrelid <> 'outbox.event_default'::regclass")) {
      connection_->exec("DROP TABLE " + *row[0]);
    }
    std::int64_t from = 3;
    for (int i = 0; i < kPartitions; ++i) {
      const std::int64_t to = i + 1 == kPartitions ? top_ + 1000000000 : from + width_;
      const std::string name = "outbox.event_x" + std::to_string(from);
      connection_->exec("CREATE TABLE " + name +
                        " (LIKE outbox.event INCLUDING ALL) WITH (autovacuum_enabled = off); "
                        "ALTER TABLE outbox.event ATTACH PARTITION " +
                        name + " FOR VALUES FROM ('" + std::to_string(from) + "') TO ('" +
                        std::to_string(to) + "')");
      from = to;
    }
  }

  [[nodiscard]] Work read_plan(const store::postgres::Query& query,
                               const std::vector<std::string>& parameters) {
    std::string list;
    for (const std::string& parameter : parameters)
      list += (list.empty() ? "'" : ", '") + parameter + "'";
    connection_->exec("BEGIN");
    connection_->exec(queries_.settings.sql);
    connection_->exec("PREPARE read AS " + query.sql);
    const std::string text =
        connection_->value("EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE read(" + list + ")");
    connection_->exec("DEALLOCATE read");
    connection_->exec("COMMIT");
    Work work;
    walk(json::parse(text)[0]["Plan"], work);
    plan_ = query.what + ": " + query.sql + '\n' + text;
    return work;
  }

  void expect_index_scans(const Work& work, std::size_t most_partitions, double most_rows) {
    EXPECT_TRUE(work.wrong_scans.empty()) << *work.wrong_scans.begin() << '\n' << plan_;
    EXPECT_LE(work.partitions.size(), most_partitions) << plan_;
    EXPECT_LE(work.rows, most_rows) << plan_;
  }

  [[nodiscard]] std::string seq_at(std::int64_t xid) {
    return connection_->value(
        "SELECT coalesce(max(seq), 0) FROM outbox.event WHERE xid < $1::text::xid8",
        std::to_string(xid));
  }

  void a_poll_at_the_head_touches_almost_nothing();
  void late_rows_are_found_by_their_transactions();
  void a_page_in_the_middle_of_a_backlog_reads_little_more_than_a_page();
  void a_pair_that_ends_early_does_not_look_into_younger_partitions();
  void large_payloads_are_fetched_by_seq();

  std::unique_ptr<PostgresDatabase> database_;
  std::unique_ptr<Pg> connection_;
  const store::postgres::Queries queries_{"outbox"};
  std::int64_t top_{0};
  std::int64_t width_{0};
  std::string plan_;
};

INSTANTIATE_TEST_SUITE_P(Postgres, ReadingPlans,
                         ::testing::Values(Statistics::none, Statistics::stale, Statistics::fresh),
                         [](const auto& kind) {
                           switch (kind.param) {
                             case Statistics::none: return "without_statistics";
                             case Statistics::stale: return "with_stale_statistics";
                             default: return "with_fresh_statistics";
                           }
                         });

void ReadingPlans::a_poll_at_the_head_touches_almost_nothing() {
  const std::string xmax = std::to_string(top_);
  const std::string floor = seq_at(top_);
  // The scans are of the partition at the head and of the default one.
  expect_index_scans(read_plan(queries_.present_lean, {xmax, floor, std::to_string(kPage), "{}"}),
                     2, 0);
  expect_index_scans(read_plan(queries_.present, {xmax, floor, std::to_string(kPage), "{}"}), 2, 0);
}

void ReadingPlans::late_rows_are_found_by_their_transactions() {
  // A hundred transactions were in progress in S1, in the middle of the log.
  const std::string xip = connection_->value(
      "SELECT array_agg(xid) FROM (SELECT DISTINCT xid FROM outbox.event WHERE xid > $1::text::xid8 ORDER BY xid LIMIT 100) x",
      std::to_string(top_ / 2));
  const std::string page = std::to_string(kPage);
  const std::string xmax = std::to_string(top_);
  const double per_transaction = static_cast<double>(kRows) / static_cast<double>(top_ - 4) + 1;
  const std::int64_t span =
      100 * std::max<std::int64_t>(1, (top_ - 4) / kRows + 1);  // the span of their ids
  const auto touched = static_cast<std::size_t>(span / width_ + 2);
  const Work late = read_plan(queries_.present, {xmax, seq_at(top_), page, xip});
  expect_index_scans(late, touched + 2, 100 * per_transaction);
  EXPECT_GT(late.rows, 0);
  // Opening all partitions takes longer than the whole rest of a poll, so that those older than the
  // first late transaction must be pruned.
  EXPECT_LE(late.opened.size(), std::size_t{kPartitions / 2 + 3}) << plan_;
  const Work bounded =
      read_plan(queries_.bounded,
                {xmax, seq_at(top_), page, xip, xmax + ":" + xmax + ":", xmax, seq_at(top_), "0"});
  expect_index_scans(bounded, touched + 2, 100 * per_transaction);
  EXPECT_GT(bounded.rows, 0);
  EXPECT_LE(bounded.opened.size(), std::size_t{kPartitions / 2 + 3}) << plan_;
}

void ReadingPlans::a_page_in_the_middle_of_a_backlog_reads_little_more_than_a_page() {
  const std::string middle = std::to_string(top_ / 2);
  const std::string xmax = std::to_string(top_);
  const std::string position = seq_at(top_ / 2 + 3 * width_);
  const std::string page = std::to_string(kPage);
  const std::string s2 = xmax + ":" + xmax + ":";
  // The merge reads the first row of each of these partitions.
  const double most = 2 * kPage + kPartitions + 2;
  expect_index_scans(read_plan(queries_.present_lean, {middle, position, page, "{}"}), kPartitions,
                     most);
  expect_index_scans(read_plan(queries_.present, {middle, position, page, "{}"}), kPartitions,
                     most);
  expect_index_scans(read_plan(queries_.bounded_lean,
                               {middle, position, page, "{}", s2, xmax, seq_at(top_), position}),
                     kPartitions, most);
  expect_index_scans(
      read_plan(queries_.bounded, {middle, position, page, "{}", s2, xmax, seq_at(top_), position}),
      kPartitions, most);
}

void ReadingPlans::a_pair_that_ends_early_does_not_look_into_younger_partitions() {
  // S1 and S2 lie close together in the middle; thousands of younger rows follow.
  const std::int64_t from = top_ / 2;
  const std::int64_t to = from + width_;
  const std::string s2 = std::to_string(to) + ":" + std::to_string(to) + ":";
  const double rows = (static_cast<double>(kRows) / static_cast<double>(top_ - 4) + 1) *
                      static_cast<double>(width_ + 1);
  const Work work =
      read_plan(queries_.bounded_lean, {std::to_string(from), seq_at(from), std::to_string(kRows),
                                        "{}", s2, std::to_string(to), seq_at(to), "0"});
  expect_index_scans(work, 3, rows + kPage);
}

void ReadingPlans::large_payloads_are_fetched_by_seq() {
  const std::string seq = seq_at(top_ / 2);
  expect_index_scans(read_plan(queries_.big_parts, {"{" + seq + "}"}), kPartitions + 1, 2);
}

// All cases are in one test, because the log is costly to make.
TEST_P(ReadingPlans, use_the_two_indexes_and_look_at_little_more_than_they_return) {
  {
    SCOPED_TRACE("a poll at the head touches almost nothing");
    a_poll_at_the_head_touches_almost_nothing();
  }
  {
    SCOPED_TRACE("late rows are found by their transactions");
    late_rows_are_found_by_their_transactions();
  }
  {
    SCOPED_TRACE("a page in the middle of a backlog reads little more than a page");
    a_page_in_the_middle_of_a_backlog_reads_little_more_than_a_page();
  }
  {
    SCOPED_TRACE("a pair that ends early does not look into younger partitions");
    a_pair_that_ends_early_does_not_look_into_younger_partitions();
  }
  {
    SCOPED_TRACE("large payloads are fetched by seq");
    large_payloads_are_fetched_by_seq();
  }
}

}  // namespace
}  // namespace outbox::test
