// A broker's place, a database and processes of outbox_test_consumer between them.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "conformance/source/place.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/postgres_database.hpp"
#include "support/servers.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {

class ConsumerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_POSTGRES();
    OUTBOX_NEEDS(conformance::variable(), "a broker");
    place_ = conformance::make_place();
    spec_ = place_->spec();
    use(std::make_unique<PostgresDatabase>());
  }
  void use(std::unique_ptr<PostgresDatabase> database) {
    database_ = std::move(database);
    url_ = database_->url();
    Pg(url_).run(
        "CREATE TABLE effect (n bigserial PRIMARY KEY, number int NOT NULL, key text NOT NULL)");
  }

  // ---- processes

  using Process = std::unique_ptr<ChildProcess>;
  [[nodiscard]] Process start(std::map<std::string, std::string> environment = {}) const {
    std::vector<std::string> command{OUTBOX_TEST_CONSUMER, url_,      "effects", spec_.source,
                                     spec_.read.at(0),     spec_.name};
    for (const auto& [name, value] : spec_.settings) command.push_back(name + "=" + value);
    return std::make_unique<ChildProcess>(
        ChildProcess::Options{.command = std::move(command),
                              .environment = std::move(environment),
                              .output = folder_.file("log")});
  }
  void stop(ChildProcess& process) const {
    process.signal(SIGTERM);
    const auto status = process.wait();
    // One that has just been started may not have blocked the signal yet.
    EXPECT_TRUE(status == 0 || status == SIGTERM) << process.ended_with() << "\n" << last_lines();
  }
  [[nodiscard]] std::string last_lines() const {
    std::ifstream file(folder_.file("log"));
    std::deque<std::string> lines;
    for (std::string line; std::getline(file, line);) {
      lines.push_back(line);
      if (lines.size() > 20) lines.pop_front();
    }
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
  }

  // ---- messages

  /// The next messages, with numbers and ids of their own.
  [[nodiscard]] std::vector<conformance::Sent> numbered(int messages) {
    std::vector<conformance::Sent> all;
    for (int i = 0; i < messages; ++i, ++sent_) {
      all.push_back({.key = std::to_string(first_key_ + sent_ % kKeys),
                     .payload = std::to_string(sent_),
                     .headers = {{"outbox-id", EventId::generate().str()}}});
    }
    return all;
  }
  void send(int messages) { place_->send(numbered(messages)); }
  /// Sends each message twice. The second one is far behind the first.
  void send_twice(int messages) {
    auto all = numbered(messages);
    const auto again = all;
    all.insert(all.end(), again.begin(), again.end());
    place_->send(all);
  }

  // ---- what is in the database

  [[nodiscard]] std::string value(const std::string& sql) const { return Pg(url_).value(sql); }
  [[nodiscard]] int count(const std::string& from) const {
    return std::stoi(value("SELECT count(*) FROM " + from));
  }
  [[nodiscard]] int effects() const {
    return std::stoi(value("SELECT count(DISTINCT number) FROM effect"));
  }
  [[nodiscard]] int received() const { return count("outbox.inbox WHERE consumer = 'effects'"); }
  [[nodiscard]] bool all_done(std::chrono::seconds limit = std::chrono::seconds(180)) const {
    return eventually([&] { return effects() == sent_; }, limit);
  }
  void expect_each_once() const {
    EXPECT_EQ(count("effect"), sent_);
    EXPECT_EQ(effects(), sent_) << last_lines();
    EXPECT_EQ(received(), sent_);
    if (!conformance::limits().keys || !conformance::limits().ordered_after_kill) return;
    EXPECT_EQ(count("(SELECT number < lag(number) OVER (PARTITION BY key ORDER BY n) AS late "
                    "FROM effect) e WHERE late"),
              0)
        << "an effect came before an earlier one of its key";
  }

  static constexpr int kKeys = 20;
  const TempDir folder_;
  std::unique_ptr<conformance::Place> place_;
  ConsumerSpec spec_;
  std::unique_ptr<PostgresDatabase> database_;
  std::string url_;  ///< Its address.
  int sent_{0};
  int first_key_{0};
};

}  // namespace outbox::test
