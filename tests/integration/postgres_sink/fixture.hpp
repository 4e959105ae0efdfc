// What the tests of the PostgreSQL sink share: a table for each test, sinks with short limits, the
// outcomes of single messages.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "conformance/sink/making.hpp"
#include "conformance/sink/suite.hpp"
#include "integration/postgres_sink/destination.hpp"
#include "support/eventually.hpp"
#include "support/servers.hpp"
#include "support/tcp_gate.hpp"

namespace outbox::test {

class PostgresSinkTest : public testing::Test {
 protected:
  using Settings = std::map<std::string, std::string>;

  void SetUp() override {
    OUTBOX_NEEDS_PGBIN();
    table_ = PostgresDestination::new_name("inbox_");
    delivered_ = PostgresDestination::new_name("delivered_");
    server().make_table(table_);
  }
  void TearDown() override {
    if (sink_) sink_->close();
  }

  [[nodiscard]] static PostgresDestination& server() { return *shared_destination(); }
  [[nodiscard]] Settings with_defaults(Settings settings) const {
    settings.emplace("url", server().url());
    settings.emplace("password", PostgresDestination::kPassword);
    settings.emplace("table", table_);
    settings.emplace("delivered_table", delivered_);
    settings.emplace("create", "true");
    settings.emplace("deadline", "5s");
    settings.emplace("connect_timeout", "5s");
    return settings;
  }
  /// Makes a sink. By default it writes to the table of the test, and keeps ids in a table that the
  /// sink makes.
  [[nodiscard]] std::unique_ptr<Sink> make(Settings settings = {},
                                           const std::string& subscription = "orders") const {
    return make_sink(make_spec("postgres", with_defaults(std::move(settings)), subscription));
  }
  /// Makes the sink of the test, and opens it.
  void open(Settings settings = {}, const std::string& subscription = "orders") {
    sink_ = make(std::move(settings), subscription);
    const Status opened = sink_->open();
    ASSERT_TRUE(opened.has_value()) << opened.error().text();
  }
  [[nodiscard]] bool reopen() const {
    return eventually([this] { return sink_->open().has_value(); });
  }
  [[nodiscard]] std::string error_of_open(Settings settings = {}) const {
    const auto sink = make(std::move(settings));
    const Status opened = sink->open();
    sink->close();
    return opened ? "" : opened.error().text();
  }

  /// Sends one message of the load, opening the sink again if it stopped before.
  [[nodiscard]] Outcome find_outcome(const Load& load, std::size_t place = 0) {
    EXPECT_TRUE(reopen());
    const Message message = load.message(place, ++token_);
    EXPECT_EQ(sink_->send({&message, 1}), 1U);
    std::vector<Outcome> outcomes;
    EXPECT_TRUE(eventually([&] {
      sink_->receive(outcomes);
      return !outcomes.empty();
    }));
    return outcomes.empty() ? Outcome() : outcomes.front();
  }

  /// Makes the ids of the table unique, as dedup_window = 0 needs.
  void make_id_unique() const {
    Pg admin = server().admin();
    admin.exec("CREATE UNIQUE INDEX ON " + table_ + " (id)");
    admin.exec("GRANT SELECT (id) ON " + table_ + " TO app");
  }
  [[nodiscard]] int count(const std::string& table) const {
    return std::stoi(server().admin().value("SELECT count(*) FROM " + table));
  }
  [[nodiscard]] int count() const { return count(table_); }
  void expect_each_once(const Load& load, const std::vector<std::size_t>& except = {}) const {
    const auto found = places(server().arrived(table_), load);
    expect_complete_and_ordered(found, load, except);
    EXPECT_EQ(found.size() + except.size(), load.size());
  }

  std::string table_;
  std::string delivered_;
  std::unique_ptr<Sink> sink_;
  Token token_{1'000'000};
};

}  // namespace outbox::test
