// What the relay's integration tests share: a relay inside the test, and what its destinations
// hold.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <outbox/relay.hpp>
#include <outbox/testing.hpp>
#include <string>
#include <utility>
#include <vector>

#include "store/store.hpp"
#include "support/eventually.hpp"
#include "support/ledger.hpp"
#include "support/servers.hpp"
#include "support/sinks.hpp"

namespace outbox::test {

/// A subscription whose sink the test passes to the relay.
inline SubscriptionSpec custom(const std::string& name, std::vector<std::string> event_types = {}) {
  SubscriptionSpec spec;
  spec.name = name;
  spec.sink = "custom";
  spec.event_types = std::move(event_types);
  return spec;
}

inline std::unique_ptr<Relay> make_relay(RelayOptions options) {
  auto relay = Relay::create(std::move(options));
  if (!relay) throw std::runtime_error(relay.error().text());
  return std::move(*relay);
}

/// Waits until everything is settled in the store. The last deliveries may not be settled yet, and
/// a relay that is stopped while it does not have its lanes (the lease ran out, the database
/// restarted) cannot settle them.
inline bool eventually_settled(const std::string& store_url, const std::string& subscription) {
  const auto store =
      store::open_store({.url = store_url, .schema = "outbox", .application = "outbox test"});
  if (!store) throw std::runtime_error(store.error().text());
  const auto catalog = (*store)->catalog();
  if (!catalog) throw std::runtime_error(catalog.error().text());
  return eventually([&] {
    const auto rows = (*catalog)->subscriptions();
    if (!rows) return false;
    return std::any_of(rows->begin(), rows->end(), [&](const store::SubscriptionRow& row) {
      if (row.spec.name != subscription) return false;
      const auto progress = (*catalog)->progress(row, 1);
      return progress && progress->pending == 0;
    });
  });
}

/// Gives the subscription a sink that records, and returns what it will hold.
inline std::shared_ptr<const testing::Recording> record(Relay& relay,
                                                        const std::string& subscription) {
  auto sink = std::make_unique<testing::RecordingSink>();
  auto recording = sink->recording();
  if (auto status = relay.use(subscription, std::move(sink)); !status)
    throw std::runtime_error(status.error().text());
  return recording;
}

/// Delivers everything that is pending, and returns what run_once() says of it.
inline RunReport delivered_once(Relay& relay) {
  const auto report = relay.run_once(std::chrono::seconds(60));
  if (!report) throw std::runtime_error(report.error().text());
  EXPECT_TRUE(report->settled) << report->reason;
  return *report;
}

inline SubscriptionReport read_report(const Relay& relay, const std::string& subscription) {
  for (const SubscriptionReport& report : relay.report().subscriptions) {
    if (report.name == subscription) return report;
  }
  return {};
}

inline std::size_t committed(const std::vector<Attempt>& attempts) {
  return static_cast<std::size_t>(
      std::count_if(attempts.begin(), attempts.end(),
                    [](const Attempt& a) { return a.end == Attempt::End::committed; }));
}

inline std::vector<Attempt> of_type(const std::vector<Attempt>& attempts, const std::string& type) {
  std::vector<Attempt> some;
  std::copy_if(attempts.begin(), attempts.end(), std::back_inserter(some),
               [&](const Attempt& a) { return a.type == type; });
  return some;
}

inline void append(std::vector<Attempt>& all, const std::vector<Attempt>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

/// Expects that every promise was kept, without a duplicate.
inline void expect_exactly_once(const std::vector<Attempt>& attempts,
                                const std::vector<Delivery>& deliveries, const std::string& where) {
  const Verdict verdict = judge(attempts, deliveries);
  EXPECT_TRUE(verdict.kept()) << where << ": " << verdict;
  EXPECT_EQ(verdict.duplicates, 0U) << where << ": " << verdict;
  EXPECT_EQ(verdict.delivered, verdict.committed) << where << ": " << verdict;
}

}  // namespace outbox::test
