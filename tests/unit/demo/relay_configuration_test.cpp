#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "config/load.hpp"
#include "demo/courier.hpp"
#include "support/temp_dir.hpp"

namespace outbox::demo {
namespace {

/// How the relay reads the file that the demo writes.
tl::expected<config::Loaded, config::Problems> read_back(const std::string& url,
                                                         const SubscriptionSpec& spec) {
  const test::TempDir folder;
  const std::string file = folder.file("relay.toml");
  std::ofstream(file) << relay_configuration(url, "outbox_demo", spec);
  return config::load({.file = file});
}

TEST(RelayConfiguration, is_read_as_it_was_meant) {
  SubscriptionSpec spec{.name = "demo", .sink = "file"};
  spec.sink_settings["path"] = R"(/tmp/with "quotes", a \ and $${env:HOME}/x.jsonl)";
  const std::string url = "postgresql://me:p%40ss\"@host/db?options=-c%20x";
  const auto loaded = read_back(url, spec);
  ASSERT_TRUE(loaded) << loaded.error().front().text();
  EXPECT_EQ(loaded->config.relay.store_url, url);
  EXPECT_EQ(loaded->config.relay.schema, "outbox_demo");
  ASSERT_EQ(loaded->config.relay.subscriptions.size(), 1U);
  EXPECT_EQ(loaded->config.relay.subscriptions.front(), spec);
}

TEST(RelayConfiguration, a_relative_path_is_of_the_folder_in_which_the_demo_was_started) {
  const auto loaded = read_back("sqlite:shop.db", {.name = "demo", .sink = "null"});
  ASSERT_TRUE(loaded) << loaded.error().front().text();
  EXPECT_EQ(loaded->config.relay.store_url,
            "sqlite:" + (std::filesystem::current_path() / "shop.db").string());
}

TEST(RelayConfiguration, names_the_topic_of_a_kafka_subscription) {
  SubscriptionSpec spec{.name = "demo", .sink = "kafka"};
  spec.sink_settings["brokers"] = "localhost:9092";
  spec.topic = "outbox-demo-x7Yz12";
  const auto loaded = read_back("sqlite:/tmp/shop.db", spec);
#ifdef OUTBOX_WITH_KAFKA
  ASSERT_TRUE(loaded) << loaded.error().front().text();
  EXPECT_EQ(loaded->config.relay.subscriptions.front(), spec);
#endif
}

}  // namespace
}  // namespace outbox::demo
