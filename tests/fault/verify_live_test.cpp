// Tests that `outbox verify`, and the verification that runs all the time, find nothing beside
// writers and relays that are killed, suspended and taken over from.
#include <fstream>
#include <optional>

#include "integration/relay/harness.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/postgres_database.hpp"
#include "support/relay_process.hpp"
#include "support/shop.hpp"
#include "support/temp_dir.hpp"
#include "support/verifier.hpp"
#include "verify/verify_job.hpp"

namespace outbox::test {
namespace {

class VerifyLive : public ::testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_POSTGRES();
    database_ = std::make_unique<PostgresDatabase>();
    shop_ = std::make_unique<Shop>(
        database_->url(),
        ShopOptions{
            .writers = 4, .transactions = 0, .longest_pause = std::chrono::milliseconds(4)});
    begin_all_the_time();
  }

  /// Begins where the one before was, as another relay does.
  void begin_all_the_time() {
    all_the_time_.reset();
    all_the_time_.emplace(verify::VerifyJobOptions{.store = {.url = database_->url()},
                                                   .verifier = "the test",
                                                   .after = std::chrono::seconds(6),
                                                   .every = std::chrono::milliseconds(200),
                                                   .most_cpu = 0.5});
  }
  /// How many events were compared all the time, and how many differences were found.
  [[nodiscard]] std::string compared() const {
    return database_->connect().value(
        "SELECT coalesce(sum(events), 0) || ' ' || coalesce(sum(differences), 0) "
        "FROM outbox.verified");
  }

  [[nodiscard]] std::unique_ptr<ChildProcess> relay(std::chrono::milliseconds lease) const {
    return start_relay(
        {.store_url = database_->url(), .file = file_, .lease = lease, .page_rows = 50});
  }
  [[nodiscard]] bool delivers(std::size_t more) const {
    const std::size_t seen = lines_in(file_);
    return eventually([&] { return lines_in(file_) > seen + more; });
  }
  [[nodiscard]] std::string generation() const {
    return database_->connect().value("SELECT coalesce(max(generation), 0) FROM outbox.lane");
  }
  [[nodiscard]] bool owns(const ChildProcess& relay) const {
    return database_->connect().value(
               "SELECT count(*) FROM outbox.lane l JOIN outbox.relay r ON r.id = l.owner "
               "WHERE l.lane = 0 AND r.pid = " +
               std::to_string(relay.pid())) == "1";
  }
  /// Stops everything, and expects that the verifier found nothing, neither under load nor at rest.
  void finish(Verifier& verifier) {
    shop_->stop();
    EXPECT_EQ(shop_->trouble(), "");
    const int times = verifier.times();
    EXPECT_TRUE(eventually([&] { return verifier.times() > times || !verifier.found().empty(); }));
    verifier.stop();
    EXPECT_EQ(verifier.found(), "");
    EXPECT_TRUE(eventually_settled(database_->url(), "lines"));
    EXPECT_EQ(Verifier::verify(database_->url(), "lines"), "");
    const std::string all = database_->connect().value("SELECT count(*) || ' 0' FROM outbox.event");
    EXPECT_TRUE(eventually([&] { return compared() == all; })) << compared() << " of " << all;
  }

  const TempDir folder_;
  const std::string file_{folder_.file("lines")};
  std::unique_ptr<PostgresDatabase> database_;
  std::unique_ptr<Shop> shop_;
  std::optional<verify::VerifyJob> all_the_time_;
};

TEST_F(VerifyLive, relays_that_are_killed_leave_nothing_to_find) {
  shop_->start();
  Verifier verifier(database_->url(), "lines");
  std::unique_ptr<ChildProcess> running;
  for (int round = 0; round < 10 * soak_factor(); ++round) {
    running = relay(std::chrono::minutes(10));
    ASSERT_TRUE(delivers(50));
    running->kill();
    if (round % 3 == 2) begin_all_the_time();
  }
  running = relay(std::chrono::minutes(10));
  finish(verifier);
}

TEST_F(VerifyLive, a_relay_that_lost_its_lanes_leaves_nothing_to_find) {
  const std::chrono::seconds lease(3);
  shop_->start();
  Verifier verifier(database_->url(), "lines");
  const auto first = relay(lease);
  ASSERT_TRUE(delivers(50));
  const auto second = relay(lease);
  for (int round = 0; round < 2 * soak_factor(); ++round) {
    ASSERT_TRUE(delivers(50));
    const std::string before = generation();
    // Only the owner's suspension changes anything, so that the other relay may be suspended in
    // vain.
    for (ChildProcess* const sleeper : {first.get(), second.get()}) {
      const bool owner = owns(*sleeper);
      sleeper->signal(SIGSTOP);
      ASSERT_TRUE(!owner || eventually([&] { return generation() != before; })) << "no takeover";
      sleeper->signal(SIGCONT);
      if (owner) break;
    }
  }
  finish(verifier);
}

}  // namespace
}  // namespace outbox::test
