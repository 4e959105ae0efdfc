// What is never shown.
#include "config/secret.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "config/subscriptions.hpp"
#include "configuration.hpp"

namespace outbox::config {
namespace {

TEST(Secret, names) {
  for (const char* name : {"sasl.password", "client.secret", "Authorization", "x-api_key", "TOKEN",
                           "ssl.keystore.password"}) {
    EXPECT_TRUE(is_secret_name(name)) << name;
  }
  for (const char* name : {"path", "brokers", "topic", "password_file", "token.endpoint.url"}) {
    EXPECT_FALSE(is_secret_name(name)) << name;
  }
}

TEST(Secret, values_that_may_hold_one) {
  for (const char* value : {"a:9092,b:9092", "/etc/ssl/ca.pem", "lz4", "5ms", "",
                            "order {aggregate_id|lower}", "{json:customer.email}"})
    EXPECT_TRUE(is_plain_value(value)) << value;
  for (const char* value : {"https://me:hush@x/", "a password=hush", "\"hush\"",
                            "{\"key\": \"hush\"}", "{hush", "hush}"})
    EXPECT_FALSE(is_plain_value(value)) << value;
}

TEST(Secret, settings_of_sinks) {
  EXPECT_EQ(show_sink_setting("file", "path", "/tmp/a=b"), "/tmp/a=b") << "a path is no secret";
  EXPECT_EQ(show_sink_setting("file", "mode", "a=b"), "***");
  EXPECT_EQ(show_sink_setting("not-built-in", "password", "hush"), "***");
}

TEST(Secret, settings_of_kafka) {
  OUTBOX_NEEDS_KAFKA_SINK();
  for (const char* name :
       {"sasl.password", "ssl.key.pem", "sasl.oauthbearer.config", "sasl.jaas.config"})
    EXPECT_EQ(show_sink_setting("kafka", name, "hush"), "***") << name;
  EXPECT_EQ(show_sink_setting("kafka", "ssl.ca.location", "/a=b"), "/a=b");
  EXPECT_EQ(show_sink_setting("kafka", "client.rack", "https://me:hush@x/"), "***");
}

TEST(Secret, the_password_of_the_store_is_not_shown) {
  Configuration file("[store]\nurl = \"postgresql://app:hush@db/shop\"\n");
  EXPECT_EQ(file.shown("store", "url"), "\"postgresql://app:***@db/shop\" outbox.toml:2");
}

TEST(Secret, a_header_that_may_hold_one_is_not_shown) {
  Configuration file(
      "[subscription.a]\nsink = \"null\"\nheaders = { Authorization = \"hush\", x = \"y\" }\n");
  EXPECT_EQ(file.shown("subscription.a", "headers"),
            R"({"Authorization":"***","x":"y"} outbox.toml:3)");
}

}  // namespace
}  // namespace outbox::config
