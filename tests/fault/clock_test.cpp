// Tests that relays survive when somebody sets the clock of the relays' machine, or of the
// database's, back and forth, by an hour and by days.
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "integration/relay/harness.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/own_postgres.hpp"
#include "support/postgres_database.hpp"
#include "support/relay_process.hpp"
#include "support/shop.hpp"
#include "support/temp_dir.hpp"
#include "support/verifier.hpp"

namespace outbox::test {
namespace {

constexpr std::int64_t kHour = 3600;

/// The wall clock of the programs that get `environment()`.
class WallClock {
 public:
  explicit WallClock(std::string file) : file_(std::move(file)) {
    set(0);
    std::filesystem::permissions(file_, std::filesystem::perms::all);
  }
  /// Sets the clock so many seconds ahead of the true time.
  void set(std::int64_t seconds) const {
    std::fstream file(
        file_, std::filesystem::exists(file_) ? std::ios::in | std::ios::out : std::ios::out);
    file.write(reinterpret_cast<const char*>(&seconds), sizeof seconds);
  }
  [[nodiscard]] std::map<std::string, std::string> environment() const {
    return {{"LD_PRELOAD", OUTBOX_TEST_CLOCK}, {"OUTBOX_TEST_CLOCK_FILE", file_}};
  }

 private:
  const std::string file_;
};

class Clock : public ::testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_PGBIN();
    std::filesystem::permissions(folder_.path(), std::filesystem::perms::all);
    server_ = std::make_unique<OwnPostgres>(std::vector<std::string>{}, of_server_.environment());
    database_ =
        std::make_unique<PostgresDatabase>(server_->url(), PostgresDatabase::Schema::migrated);
    shop_ = std::make_unique<Shop>(
        database_->url(),
        ShopOptions{
            .writers = 4, .transactions = 0, .longest_pause = std::chrono::milliseconds(5)});
    shop_->start();
    for (auto& relay : relays_) relay = start();
    ASSERT_TRUE(delivers());
  }
  [[nodiscard]] std::unique_ptr<ChildProcess> start() const {
    return start_relay({.store_url = database_->url(),
                        .file = file_,
                        .lease = std::chrono::seconds(2),
                        .page_rows = 50,
                        .log = folder_.file("log"),
                        .environment = of_relays_.environment()});
  }
  [[nodiscard]] bool delivers() const {
    const std::size_t seen = lines_in(file_);
    return eventually([&] { return lines_in(file_) > seen + 60; });
  }
  [[nodiscard]] int count_lanes(const ChildProcess& relay) const {
    return std::stoi(database_->connect().value(
        "SELECT count(*) FROM outbox.lane l JOIN outbox.relay r ON r.id = l.owner WHERE l.lane_group = 'custom:lines' AND r.pid = $1::bigint",
        std::to_string(relay.pid())));
  }
  Verdict finish() {
    shop_->stop();
    EXPECT_EQ(shop_->trouble(), "");
    const auto attempts = shop_->attempts();
    EXPECT_TRUE(eventually([&] { return judge(attempts, deliveries_in(file_)).lost == 0; }));
    EXPECT_TRUE(eventually_settled(database_->url(), "lines"));
    // A relay that hung and is told to stop before it is back says, rightly, that it leaves events
    // in flight. Therefore the test waits until both are back.
    for (auto& relay : relays_) EXPECT_TRUE(eventually([&] { return count_lanes(*relay) == 32; }));
    for (auto& relay : relays_) relay->signal(SIGTERM);
    for (auto& relay : relays_) EXPECT_EQ(relay->wait(), 0);
    EXPECT_EQ(Verifier::verify(database_->url(), "lines"), "");
    return judge(attempts, deliveries_in(file_));
  }

  const TempDir folder_;
  const std::string file_{folder_.file("lines")};
  const WallClock of_server_{folder_.file("server_clock")};
  const WallClock of_relays_{folder_.file("relay_clock")};
  std::unique_ptr<OwnPostgres> server_;
  std::unique_ptr<PostgresDatabase> database_;
  std::unique_ptr<Shop> shop_;
  std::array<std::unique_ptr<ChildProcess>, 2> relays_;
};

TEST_F(Clock, of_the_relays_decides_nothing) {
  for (const std::int64_t ahead : {kHour, -kHour, 24 * kHour, -48 * kHour, std::int64_t{0}}) {
    of_relays_.set(ahead);
    ASSERT_TRUE(delivers()) << ahead;
  }
  const Verdict verdict = finish();
  EXPECT_TRUE(verdict.kept()) << verdict;
}

TEST_F(Clock, of_the_database_may_cost_duplicates_only) {
  for (const std::int64_t ahead : {kHour, -kHour, 24 * kHour, -48 * kHour, std::int64_t{0}}) {
    of_server_.set(ahead);
    const std::string now =
        database_->connect().value("SELECT extract(epoch FROM clock_timestamp())::bigint");
    ASSERT_LT(std::abs(std::stoll(now) - std::time(nullptr) - ahead), kHour / 2)
        << "it did not jump";
    ASSERT_TRUE(delivers()) << ahead;
    // Takeover works by the database's clock, too: from a relay that was killed, and from one that
    // hangs.
    relays_[0]->kill();
    ASSERT_TRUE(eventually([&] { return count_lanes(*relays_[1]) == 64; })) << ahead;
    relays_[0] = start();
    ASSERT_TRUE(eventually([&] { return count_lanes(*relays_[0]) == 32; })) << ahead;
    relays_[1]->signal(SIGSTOP);
    ASSERT_TRUE(eventually([&] { return count_lanes(*relays_[0]) == 64; })) << ahead;
    relays_[1]->signal(SIGCONT);
    ASSERT_TRUE(delivers()) << ahead;
  }
  const Verdict verdict = finish();
  EXPECT_TRUE(verdict.kept()) << verdict;
  RecordProperty("duplicates", std::to_string(verdict.duplicates));
}

TEST_F(Clock, of_the_database_set_back_while_a_relay_hangs_is_taken_over_from) {
  relays_[1]->signal(SIGSTOP);
  of_server_.set(-24 * kHour);
  EXPECT_TRUE(eventually([&] { return count_lanes(*relays_[0]) == 64; }, std::chrono::seconds(60)));
  relays_[1]->signal(SIGCONT);
  ASSERT_TRUE(delivers());
  const Verdict verdict = finish();
  EXPECT_TRUE(verdict.kept()) << verdict;
}

}  // namespace
}  // namespace outbox::test
