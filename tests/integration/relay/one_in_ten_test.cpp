// A million events, of which each subscription wants one in ten: every broker gets exactly those, each key in order, and the relay's
// memory does not grow with the log.
#include <gtest/gtest.h>

#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "integration/relay/relay_on_postgres.hpp"
#include "testkit/destination.hpp"

namespace outbox::test {
namespace {

using testkit::Destination;

constexpr int kEvents = 1'000'000;
constexpr int kMatching = kEvents / 10;
constexpr int kKeys = 100;
constexpr long kMostMiB = 128;  ///< With the clients of all brokers.

// Two writers, each with keys of its own, in transactions of 500. Of each key every tenth event is a payment; n counts up.
constexpr const char* kFill = R"(
DO $$ BEGIN
  PERFORM set_config('synchronous_commit', 'off', false);
  FOR batch IN 0 .. 999 LOOP
    INSERT INTO outbox.event_in (id, aggregate_type, aggregate_id, event_type, payload, content_type, headers)
    SELECT gen_random_uuid(), 'order', '{writer}-' || (i % 50), CASE (i / 50) % 10 WHEN 0 THEN 'OrderPaid' ELSE 'OrderPlaced' END,
           convert_to('{"key": "{writer}-' || (i % 50) || '", "n": ' || i || '}', 'UTF8'), 'application/json', '{}'
    FROM generate_series(batch * 500, batch * 500 + 499) i;
    COMMIT;
  END LOOP;
END $$)";

void fill(const std::string& url, const std::string& writer) {
  std::string sql = kFill;
  for (std::size_t at = 0; (at = sql.find("{writer}")) != std::string::npos;)
    sql.replace(at, 8, writer);
  Pg(url).run(sql);
}

/// What VmHWM of this process says since the last reset. Unit: MiB.
long peak_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stol(line.substr(6)) / 1024;
  }
  return 0;
}
void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

/// The numbers of each key, in the order of arrival.
class Arrived {
 public:
  void add(std::string_view message) {
    const std::string text(message);
    const auto key = text.find("\"key\": \"") + 8;
    const auto number = text.find("\"n\": ") + 5;
    auto& last = last_[text.substr(key, text.find('"', key) - key)];
    const int n = std::stoi(text.substr(number));
    if (n % 500 >= 50) ++unwanted;
    if (last.count > 0 && n <= last.number) ++disordered;
    last = {.count = last.count + 1, .number = n};
    ++count;
  }
  [[nodiscard]] std::size_t keys() const { return last_.size(); }

  int count{0};
  int unwanted{0};
  int disordered{0};

 private:
  struct Last {
    int count{0};
    int number{0};
  };
  std::map<std::string, Last> last_;
};

class OneInTen : public RelayOnPostgres {
 protected:
  void SetUp() override {
    RelayOnPostgres::SetUp();
    if (IsSkipped()) return;
    add("file", "file:" + folder_.file("orders"));
    add_broker("kafka", "OUTBOX_TEST_KAFKA");
    add_broker("redis", "OUTBOX_TEST_REDIS");
    add_broker("nats", "OUTBOX_TEST_NATS");
    add_broker("rabbitmq", "OUTBOX_TEST_RABBITMQ");
  }
  void add_broker(const std::string& kind, const char* variable) {
    if (const auto url = environment(variable)) {
      add(kind, kind + ":outbox-one-in-ten-" + std::to_string(::getpid()) + "@" + *url);
    } else {
      missing_ += (missing_.empty() ? "" : ", ") + kind + " (" + variable + " is not set)";
    }
  }
  void add(const std::string& name, const std::string& where) {
    destinations_[name] = testkit::make_destination(where);
    destinations_[name]->open();
    SubscriptionSpec spec = destinations_[name]->subscription(name);
    spec.event_types = {"OrderPaid"};
    options_.subscriptions.push_back(std::move(spec));
  }
  [[nodiscard]] bool all_is_delivered(const Relay& relay) const {
    for (const auto& [name, destination] : destinations_) {
      if (report_of(relay, name).delivered < kMatching) return false;
    }
    return true;
  }

  const TempDir folder_;
  std::map<std::string, std::unique_ptr<Destination>> destinations_;
  std::string missing_;
};

TEST_F(OneInTen, of_a_million_events_arrives_whole_and_in_order) {
  auto other = std::async(std::launch::async, fill, database().url(), "b");
  fill(database().url(), "a");
  other.get();
  reset_peak();
  {
    auto relay = Relay::create(options_);
    ASSERT_TRUE(relay) << relay.error().text();
    ASSERT_TRUE((*relay)->start());
    EXPECT_TRUE(eventually([&] { return all_is_delivered(**relay); }, std::chrono::minutes(5)));
    EXPECT_TRUE((*relay)->stop(std::chrono::seconds(30)).drained);
  }
#ifndef __SANITIZE_ADDRESS__
  EXPECT_LT(peak_mib(), kMostMiB);
#endif
  for (const auto& [name, destination] : destinations_) {
    Arrived arrived;
    EXPECT_TRUE(eventually([&] {
      destination->read([&](std::string_view message) { arrived.add(message); },
                        std::chrono::milliseconds(100));
      return arrived.count >= kMatching;
    })) << name;
    EXPECT_EQ(arrived.count, kMatching) << name;
    EXPECT_EQ(arrived.keys(), kKeys) << name;
    EXPECT_EQ(arrived.unwanted, 0) << name;
    EXPECT_EQ(arrived.disordered, 0) << name;
  }
  if (!missing_.empty()) GTEST_SKIP() << "all but: " << missing_;
}

}  // namespace
}  // namespace outbox::test
