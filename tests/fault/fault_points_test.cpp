// Tests that relays may die, or be suspended past their lease, at each named point
// (support/fault_points.hpp) while others go on. A point that is never reached fails the test.
#include "support/fault_points.hpp"

#include <csignal>
#include <filesystem>
#include <set>

#include "integration/relay/harness.hpp"
#include "integration/retention/fixture.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/ledger_check.hpp"
#include "support/postgres_database.hpp"
#include "support/relay_process.hpp"
#include "support/shop.hpp"
#include "support/temp_dir.hpp"
#include "support/verifier.hpp"

namespace outbox::test {
namespace {

/// Points that are struck at the same time, each in a relay of its own.
std::vector<std::vector<std::string>> groups_of_points() {
  constexpr std::size_t kGroups =
      8;  // so that neighbours, of which only one can be reached at a time, are apart
  std::vector<std::vector<std::string>> groups(kGroups);
  for (std::size_t i = 0; i < kFaultPoints.size(); ++i) {
    const std::string point = kFaultPoints.at(i);
    // A relay gives lanes away only if it has its share when another one joins. Therefore each
    // point of a handover is struck alone.
    if (point.starts_with("handover")) {
      groups.push_back({point});
    } else {
      groups[i % kGroups].push_back(point);
    }
  }
  return groups;
}

class FaultPoints : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_POSTGRES();
    database_ = std::make_unique<PostgresDatabase>();
    Pg admin(database_->url());
    // Other tests use up transaction ids of the server, too, so that there are many partitions:
    // history in the last one, which is wide, is never removed.
    make_small_partitions(admin, 200, 500);
    shop_ = std::make_unique<Shop>(
        database_->url(),
        ShopOptions{
            .writers = 4, .transactions = 0, .longest_pause = std::chrono::milliseconds(5)});
  }

  [[nodiscard]] std::unique_ptr<ChildProcess> relay(
      std::map<std::string, std::string> environment = {}) const {
    environment["OUTBOX_TEST_REJECTS"] = "40";
    return start_relay({.store_url = database_->url(),
                        .file = file_,
                        .lease = kLease,
                        .page_rows = 20,
                        .log = folder_.file("log"),
                        .environment = std::move(environment)});
  }
  struct Victim {
    std::string point;
    std::string hit;
    std::unique_ptr<ChildProcess> process{};
  };
  [[nodiscard]] Victim victim_at(const std::string& point) const {
    Victim victim{.point = point, .hit = folder_.file(point)};
    // A point that is reached often is struck the fifth time, so that the relay is in the middle of
    // work.
    static const std::set<std::string> often{"page", "barrier", "send", "ack", "settle"};
    const int nth = often.contains(point.substr(0, point.find('.'))) ? 5 : 1;
    std::map<std::string, std::string> environment{
        {"OUTBOX_FAULT_FILE", victim.hit},
        {"OUTBOX_FAULT_POINT",
         point + " " + std::to_string(nth) + " " + std::to_string(GetParam())}};
    if (point.starts_with("removal") || point.starts_with("tidy"))
      environment["OUTBOX_TEST_RETENTION"] = "1";
    victim.process = relay(std::move(environment));
    return victim;
  }

  [[nodiscard]] int count_lanes(const ChildProcess& relay) const {
    return std::stoi(database_->connect().value(
        "SELECT count(*) FROM outbox.lane l JOIN outbox.relay r ON r.id = l.owner WHERE l.lane_group = 'custom:lines' AND r.pid = $1::bigint",
        std::to_string(relay.pid())));
  }
  [[nodiscard]] bool delivers() const {
    const std::size_t seen = lines_in(file_);
    return eventually([&] { return lines_in(file_) > seen + 20; });
  }
  /// Does what brings the relay to the point, beyond starting it.
  void lead(const Victim& victim) {
    const ChildProcess& process = *victim.process;
    if (victim.point.starts_with("leave")) {
      ASSERT_TRUE(eventually([&] { return count_lanes(process) > 0; })) << victim.point;
      process.signal(SIGTERM);
    }
    if (victim.point.starts_with("handover")) {
      ASSERT_TRUE(leads_to_handover(victim)) << victim.point;
    }
  }
  /// Starts another relay again and again. Once is not enough, because a victim that is late with
  /// its heartbeat comes back without lanes to give away.
  [[nodiscard]] bool leads_to_handover(const Victim& victim) {
    const auto is_hit = [&] { return std::filesystem::exists(victim.hit); };
    const auto has_its_share = [&] {
      return count_lanes(*victim.process) >= 64 / (kSurvivors + 1) - 1;
    };
    for (int attempt = 0; attempt < 12; ++attempt) {
      if (!eventually([&] { return is_hit() || has_its_share(); })) return false;
      late_ = relay();
      if (eventually(is_hit, std::chrono::seconds(10))) return true;
      late_->signal(SIGTERM);
      if (!late_->wait()) return false;
    }
    return false;
  }
  void strike(const std::vector<std::string>& points) {
    // The lease of a relay that was killed while it removed history would keep others from it for
    // minutes.
    database_->connect().exec("UPDATE outbox.meta SET pruner = NULL, pruner_until = NULL");
    std::vector<Victim> victims;
    for (const std::string& point : points) victims.push_back(victim_at(point));
    for (const Victim& victim : victims) lead(victim);
    if (HasFatalFailure()) return;
    for (const Victim& victim : victims) {
      ASSERT_TRUE(eventually([&] { return std::filesystem::exists(victim.hit); }))
          << victim.point << " is never reached";
    }
    for (const Victim& victim : victims) {
      ASSERT_TRUE(eventually([&] { return count_lanes(*victim.process) == 0; }))
          << victim.point << ": nobody took over";
    }
    ASSERT_TRUE(delivers()) << "nobody goes on";
    for (const Victim& victim : victims) victim.process->signal(SIGCONT);
    if (GetParam() == SIGSTOP) {
      ASSERT_TRUE(delivers());
    }
    for (const Victim& victim : victims) victim.process->signal(SIGTERM);
    for (const Victim& victim : victims) {
      EXPECT_TRUE(victim.process->wait()) << victim.point << ": it does not end";
      EXPECT_EQ(victim.process->ended_with() == "signal 9", GetParam() == SIGKILL)
          << victim.point << ": " << victim.process->ended_with();
    }
    if (!late_) return;
    late_->signal(SIGTERM);
    EXPECT_TRUE(late_->wait()) << "the relay that came late does not end";
    late_.reset();
  }

  static constexpr std::chrono::milliseconds kLease{1500};
  static constexpr int kSurvivors = 2;
  const TempDir folder_;
  const std::string file_{folder_.file("lines")};
  std::unique_ptr<PostgresDatabase> database_;
  std::unique_ptr<Shop> shop_;
  std::unique_ptr<ChildProcess> late_;
};

INSTANTIATE_TEST_SUITE_P(Relays, FaultPoints, ::testing::Values(SIGKILL, SIGSTOP),
                         [](const auto& relays) {
                           return relays.param == SIGKILL ? "killed" : "suspended";
                         });

TEST_P(FaultPoints, others_take_over_and_nothing_is_lost_invented_or_reordered) {
  std::vector<std::unique_ptr<ChildProcess>> survivors;
  for (int i = 0; i < kSurvivors; ++i) survivors.push_back(relay());
  shop_->start();
  ASSERT_TRUE(delivers());
  for (const auto& points : groups_of_points()) {
    strike(points);
    if (HasFatalFailure()) return;
  }
  shop_->stop();
  ASSERT_EQ(shop_->trouble(), "");
  const auto attempts = shop_->attempts();
  EXPECT_TRUE(eventually([&] { return judge(attempts, deliveries_in(file_)).lost == 0; }));
  EXPECT_TRUE(eventually_settled(database_->url(), "lines"));
  for (auto& survivor : survivors) {
    survivor->signal(SIGTERM);
    EXPECT_EQ(survivor->wait(), 0);
  }
  const Verdict verdict = judge(attempts, deliveries_in(file_));
  EXPECT_TRUE(verdict.kept()) << verdict;
  EXPECT_EQ(Verifier::verify(database_->url(), "lines"), "");
  EXPECT_EQ(database_->connect().value("SELECT count(*) FROM outbox.parked"), "0");
  RecordProperty("duplicates", std::to_string(verdict.duplicates));
}

}  // namespace
}  // namespace outbox::test
