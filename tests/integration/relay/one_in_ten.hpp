// Tests a log of which each subscription wants one event in ten. Every destination gets exactly
// those, each key in order, and the relay's memory does not grow with the log.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "integration/relay/relay_on_postgres.hpp"
#include "support/sanitized.hpp"

namespace outbox::test {

// Two writers, each with keys of its own, write transactions of 500 events. Every tenth event of a
// key is a payment; n counts up.
inline constexpr const char* kFillOneInTen = R"(
DO $$ BEGIN
  PERFORM set_config('synchronous_commit', 'off', false);
  FOR batch IN 1 .. {batches} LOOP
    INSERT INTO outbox.event_in (id, aggregate_type, aggregate_id, event_type, payload, content_type, headers)
    SELECT gen_random_uuid(), 'order', '{writer}-' || (i % 50), CASE (i / 50) % 10 WHEN 0 THEN 'OrderPaid' ELSE 'OrderPlaced' END,
           convert_to('{"key": "{writer}-' || (i % 50) || '", "n": ' || i || '}', 'UTF8'), 'application/json', '{}'
    FROM generate_series(batch * 500, batch * 500 + 499) i;
    COMMIT;
  END LOOP;
END $$)";

/// Counts what arrived of one subscription.
class OneInTenTally {
 public:
  void add(std::string_view message) {
    const std::string text(message);
    const auto key = text.find("\"key\": \"") + 8;
    const auto number = text.find("\"n\": ") + 5;
    auto& last = last_[text.substr(key, text.find('"', key) - key)];
    const int n = std::stoi(text.substr(number));
    if (n % 500 >= 50) ++unwanted;
    if (n <= last) ++disordered;
    last = n;
    ++count;
  }
  [[nodiscard]] std::size_t keys() const { return last_.size(); }

  int count{0};
  int unwanted{0};
  int disordered{0};

 private:
  std::map<std::string, int> last_;  ///< The newest number of each key. The first one is 500.
};

class OneInTen : public RelayOnPostgres {
 protected:
  /// Calls the function for each message that has arrived since the last call.
  using Read = std::function<void(const std::function<void(std::string_view)>&)>;

  /// Adds a subscription with its destination. If `meanwhile` is true, the destination is also read
  /// while events are delivered.
  void add(SubscriptionSpec spec, Read read, bool meanwhile = false) {
    spec.event_types = {"OrderPaid"};
    destinations_[spec.name] = {.read = std::move(read), .meanwhile = meanwhile, .arrived = {}};
    options_.subscriptions.push_back(std::move(spec));
  }

  /// Fills the log, delivers it and checks what arrived. This process may use at most `most_mib`
  /// while the relay delivers.
  void expect_one_in_ten(int events, long most_mib) {
    const int matching = events / 10;
    fill(events);
    reset_peak();
    {
      auto relay = Relay::create(options_);
      ASSERT_TRUE(relay) << relay.error().text();
      ASSERT_TRUE((*relay)->start());
      EXPECT_TRUE(eventually([&] { return all_is_delivered(**relay, matching); },
                             std::chrono::minutes(12)));
      EXPECT_TRUE((*relay)->stop(std::chrono::seconds(30)).drained);
    }
    // Destinations that were read meanwhile have used memory of this process, too.
    if (!kSanitized && !reads_meanwhile()) {
      EXPECT_LT(peak_mib(), most_mib);
    }
    for (auto& [name, place] : destinations_) {
      EXPECT_TRUE(eventually([&place = place, matching] {
        place.take();
        return place.arrived.count >= matching;
      })) << name;
      EXPECT_EQ(place.arrived.count, matching) << name;
      EXPECT_EQ(place.arrived.keys(), 100U) << name;
      EXPECT_EQ(place.arrived.unwanted, 0) << name;
      EXPECT_EQ(place.arrived.disordered, 0) << name;
    }
  }

 private:
  struct Place {
    Read read;
    bool meanwhile{false};
    OneInTenTally arrived;

    void take() {
      read([this](std::string_view message) { arrived.add(message); });
    }
  };

  [[nodiscard]] bool reads_meanwhile() const {
    return std::any_of(destinations_.begin(), destinations_.end(),
                       [](const auto& one) { return one.second.meanwhile; });
  }
  void fill(int events) const {
    const std::string batches = std::to_string(events / 1000);
    auto other = std::async(std::launch::async, [&] { write_as("b", batches); });
    write_as("a", batches);
    other.get();
  }
  void write_as(const std::string& writer, const std::string& batches) const {
    std::string sql = kFillOneInTen;
    for (const auto& [name, value] :
         std::map<std::string, std::string>{{"{writer}", writer}, {"{batches}", batches}}) {
      for (std::size_t at = 0; (at = sql.find(name)) != std::string::npos;)
        sql.replace(at, name.size(), value);
    }
    Pg(database().url()).run(sql);
  }
  [[nodiscard]] bool all_is_delivered(const Relay& relay, int matching) {
    for (auto& [name, place] : destinations_) {
      if (place.meanwhile) place.take();
      const SubscriptionReport report = read_report(relay, name);
      // An event counts as parked before its row is written, and is in the window until then.
      if (report.delivered + report.parked < static_cast<std::uint64_t>(matching) ||
          report.in_window > 0)
        return false;
    }
    // An event that is slow is set aside and delivered beside the stream.
    return Pg(database().url()).value("SELECT count(*) FROM outbox.parked") == "0";
  }
  /// The VmHWM of this process: the most memory that it used since the last reset.
  static long peak_mib() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("VmHWM:")) return std::stol(line.substr(6)) / 1024;
    }
    return 0;
  }
  static void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

  std::map<std::string, Place> destinations_;
};

}  // namespace outbox::test
