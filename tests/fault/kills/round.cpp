#include "fault/kills/round.hpp"

#include <csignal>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "integration/relay/harness.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/kafka_deliveries.hpp"
#include "support/own_postgres.hpp"
#include "support/postgres_database.hpp"
#include "support/relay_process.hpp"
#include "support/servers.hpp"
#include "support/shop.hpp"

namespace outbox::test::kills {
namespace {

constexpr std::size_t kRelays = 3;
constexpr int kPartitions = 6;
constexpr std::uint64_t kWindow = 100;
/// So many events are delivered between two faults, so that each fault strikes in the middle of
/// work.
constexpr std::size_t kProgress = 50;

/// Asynchronous commits stay in memory for long, so that a crash takes them back.
const std::vector<std::string> kLazyLog = {"wal_writer_delay = '10s'",
                                           "wal_writer_flush_after = '1GB'"};

class Stuck : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Round {
 public:
  explicit Round(const RoundOptions& options)
      : options_(options),
        server_(kLazyLog),
        database_(server_.url(), PostgresDatabase::Schema::migrated),
        topic_(options.brokers, kPartitions),
        reader_(options.brokers, topic_.name(), kPartitions),
        shop_(database_.url(),
              {.writers = 6,
               .keys = 30,
               .transactions = 0,
               .asynchronous_percent = 30,
               .longest_pause = std::chrono::milliseconds(6),
               .reconnect = true,
               .journal = options.folder + "/journal",
               .seed = options.seed + static_cast<std::uint64_t>(options.number)}) {
    write_config();
  }

  RoundResult run() {
    const auto start = std::chrono::steady_clock::now();
    try {
      for (std::size_t number = 0; number < kRelays; ++number) start_relay(number);
      shop_.start();
      for (const Strike& strike : schedule(options_.seed, options_.number, options_.kills)) {
        await_progress();
        std::this_thread::sleep_for(strike.pause);  // a random moment is part of the scenario
        hit(strike);
        ++result_.hits.at(static_cast<std::size_t>(strike.fault));
        result_.duplicates_allowed += kWindow * windows_repeated(strike.fault, kRelays);
      }
      await_progress();
      finish();
    } catch (const Stuck& error) {
      result_.trouble = error.what();
    }
    shop_.stop();
    result_.seconds = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start)
            .count());
    return result_;
  }

 private:
  // ---- the relays

  void write_config() const {
    std::ofstream(config_) << "[store]\nurl = \"" << database_.url()
                           << "\"\n[relay]\nlease = \"1500ms\"\npage = 50\nwindow_events = "
                           << kWindow << "\n[subscription.orders]\nsink = \"kafka\"\ntopic = \""
                           << topic_.name() << "\"\n[subscription.orders.kafka]\nbrokers = \""
                           << options_.brokers << "\"\n";
  }
  void start_relay(std::size_t number) {
    relays_.at(number) = start_outbox_relay(
        config_, options_.folder + "/relay-" + std::to_string(number) + ".log", {"--wait"});
  }
  /// The relays that own lanes. There is none while the database does not answer.
  [[nodiscard]] std::vector<std::size_t> owners() const {
    std::vector<std::size_t> all;
    for (std::size_t number = 0; number < kRelays; ++number) {
      if (count_lanes(number) > 0) all.push_back(number);
    }
    return all;
  }
  [[nodiscard]] int count_lanes(std::size_t number) const {
    try {
      return std::stoi(database_.connect().value(
          "SELECT count(*) FROM outbox.lane l JOIN outbox.relay r ON r.id = l.owner "
          "WHERE l.lane_group = 'default' AND r.pid = $1::bigint",
          std::to_string(relays_.at(number)->pid())));
    } catch (const PgError&) {
      return 0;
    }
  }
  /// A relay that owns lanes. To kill another one would hit nothing.
  [[nodiscard]] std::size_t an_owner(std::uint64_t which) const {
    std::vector<std::size_t> able;
    await("no relay has lanes", [&] { return !(able = owners()).empty(); });
    return able[which % able.size()];
  }

  // ---- progress

  template <class Condition>
  static void await(const std::string& otherwise, const Condition& condition) {
    if (!eventually(condition)) throw Stuck(otherwise);
  }
  std::size_t arrived() {
    reader_.read_to_end([this](const rd_kafka_message_t&) { ++arrived_; });
    return arrived_;
  }
  void await_progress() {
    const std::size_t seen = arrived();
    await("nothing is delivered any more", [&] { return arrived() > seen + kProgress; });
    for (auto& relay : relays_) {
      if (!relay->running()) throw Stuck("a relay ended by itself: " + relay->ended_with());
    }
    if (!shop_.trouble().empty()) throw Stuck("the shop: " + shop_.trouble());
  }

  // ---- faults

  void hit(const Strike& strike) {
    switch (strike.fault) {
      case Fault::relay_killed: return kill_relay(an_owner(strike.victim));
      case Fault::relay_suspended: return suspend(strike.victim, [] {});
      case Fault::all_relays_killed:
        for (auto& relay : relays_) relay->kill();
        for (std::size_t number = 0; number < kRelays; ++number) start_relay(number);
        return;
      case Fault::database_stopped: return stop_database();
      case Fault::backend_killed: return kill_backend(strike.victim);
      case Fault::database_behind_sleeper:
        return suspend(strike.victim, [this] { stop_database(); });
      case Fault::broker_killed:
        kill_server("kafka");
        start_server("kafka");
        return;
    }
  }
  void kill_relay(std::size_t number) {
    relays_.at(number)->kill();
    start_relay(number);
  }
  template <class Meanwhile>
  void suspend(std::uint64_t which, const Meanwhile& meanwhile) {
    const std::size_t number = an_owner(which);
    ChildProcess& relay = *relays_.at(number);
    relay.signal(SIGSTOP);
    meanwhile();
    await("nobody took over from a suspended relay", [&] {
      // The other relays have all of its lanes.
      const auto able = owners();
      return !able.empty() && count_lanes(number) == 0;
    });
    relay.signal(SIGCONT);
  }
  void stop_database() {
    server_.stop_immediate();
    server_.start();
  }
  void kill_backend(std::uint64_t which) {
    Pg witness = database_.connect();
    auto backends = witness.exec("SELECT 1 WHERE false");
    await("nobody is connected", [&] {
      backends = witness.exec(
          "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' "
          "AND pid <> pg_backend_pid() ORDER BY pid");
      return !backends.empty();
    });
    const pid_t victim = std::stoi(*backends.at(which % backends.size()).at(0));
    if (kill(victim, SIGKILL) != 0) throw std::runtime_error("cannot kill a backend");
    await("the server does not notice that a backend died", [&] {
      try {
        (void)witness.exec("SELECT 1");
        return false;
      } catch (const PgError&) {
        return true;
      }
    });
    await("the server does not recover",
          [&] { return PQping(database_.url().c_str()) == PQPING_OK; });
  }

  // ---- the end

  void finish() {
    shop_.stop();
    if (!shop_.trouble().empty()) throw Stuck("the shop: " + shop_.trouble());
    const auto attempts = shop_.attempts();
    result_.taken_back = static_cast<std::uint64_t>(
        std::count_if(attempts.begin(), attempts.end(), [](const Attempt& attempt) {
          return attempt.acknowledged && attempt.end == Attempt::End::rolled_back;
        }));
    // The judge counts below what is lost.
    Judge judge(attempts);
    KafkaReader reader(options_.brokers, topic_.name(), kPartitions);
    std::ofstream ids(ids_);
    const auto read = [&] {
      reader.read_to_end([&](const rd_kafka_message_t& message) {
        judge.saw(to_delivery(message));
        ids << read_event_id(message) << '\n';
      });
      ids.flush();
    };
    const bool complete = eventually([&] {
      read();
      return judge.complete();
    });
    const bool settled = complete && eventually_settled(database_.url(), "orders");
    for (auto& relay : relays_) relay->signal(SIGTERM);
    for (auto& relay : relays_) {
      if (!relay->wait()) throw Stuck("a relay does not stop");
    }
    read();
    result_.verdict = judge.verdict();
    if (complete && !settled) throw Stuck("what was delivered is not settled");
    result_.trouble = verify();
  }
  /// Returns what `outbox verify` says when it compares the ids on the topic with the ledger;
  /// nothing if it finds no fault.
  [[nodiscard]] std::string verify() const {
    const std::string output = options_.folder + "/verify.log";
    ChildProcess verb({.command = {outbox_program(), "verify", "-c", config_, "--subscription",
                                   "orders", "--delivered", ids_},
                       .output = output});
    if (verb.wait(std::chrono::minutes(10)) == 0) return {};
    std::ifstream in(output);
    return "verify: " + std::string(std::istreambuf_iterator<char>(in), {});
  }

  const RoundOptions options_;
  const std::string config_{options_.folder + "/outbox.toml"};
  const std::string ids_{options_.folder + "/delivered"};
  OwnPostgres server_;
  PostgresDatabase database_;
  KafkaTopic topic_;
  KafkaReader reader_;
  std::size_t arrived_{0};
  Shop shop_;
  std::array<std::unique_ptr<ChildProcess>, kRelays> relays_;
  RoundResult result_;
};

}  // namespace

std::uint64_t RoundResult::kills() const {
  return std::accumulate(hits.begin(), hits.end(), std::uint64_t{0});
}

RoundResult run_round(const RoundOptions& options) { return Round(options).run(); }

}  // namespace outbox::test::kills
