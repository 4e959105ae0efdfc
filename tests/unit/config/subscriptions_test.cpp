// [subscription.NAME]: its settings and those of its sink, which both come from tables.
#include "config/subscriptions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "config/belonging.hpp"
#include "config/settings.hpp"
#include "configuration.hpp"

namespace outbox::config {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Texts = std::map<std::string, std::string>;

const std::string kFile = "[subscription.a]\nsink = \"file\"\n";
const std::string kKafka = "[subscription.a]\nsink = \"kafka\"\nkafka.brokers = \"b:1\"\n";

TEST(Subscriptions, are_read_in_the_order_of_the_file) {
  Configuration file(
      "[subscription.z]\nsink = \"null\"\nevent_types = [\"Order*\"]\nheaders = { x = \"{seq}\" }\n"
      "format = \"json\"\nstart = \"now\"\n[subscription.a]\nsink = \"file\"\nfile.path = \"x\"\n");
  const auto& all = file.loaded().config.relay.subscriptions;
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0], (SubscriptionSpec{.name = "z",
                                      .sink = "null",
                                      .event_types = {"Order*"},
                                      .format = "json",
                                      .headers = {{"x", "{seq}"}},
                                      .start = Start::now}));
  EXPECT_EQ(all[1].sink_settings, (Texts{{"path", file.path("x")}}));
}

TEST(Subscriptions, unknown_settings_come_with_the_nearest_known_one) {
  EXPECT_THAT(
      Configuration(kFile + "file.path = \"x\"\nevent_type = [\"x\"]\n").problems(),
      ElementsAre("4 unknown setting subscription.a.event_type (did you mean event_types?)"));
  EXPECT_THAT(Configuration(kFile + "file.paht = \"x\"\n").problems(),
              ElementsAre("3 unknown setting subscription.a.file.paht (did you mean path?)"));
  EXPECT_THAT(Configuration("[subscription.a]\nsink = \"null\"\nnull.x = 1\n").problems(),
              ElementsAre("3 unknown setting subscription.a.null.x (this sink has no settings)"));
  EXPECT_THAT(Configuration("[subscription.a]\nsink = \"flie\"\n").problems(),
              ElementsAre(HasSubstr("did you mean \"file\"?")));
}

// Tests each setting of a subscription and of its sink at the wrong level.
TEST(Subscriptions, a_setting_at_the_wrong_level_is_told_where_it_belongs) {
  const auto of_type = [](const Setting& setting) {
    return setting.type == SettingType::table ? "{ x = \"y\" }" : "\"x\"";
  };
  for (const sink::SinkKind& kind : sink::kinds()) {
    const std::string start = "[subscription.a]\nsink = \"" + kind.name + "\"\n";
    for (const auto& [setting, slot] : subscription_settings()) {
      if (has_setting(kind, setting.name)) continue;
      const std::string path = kind.name + "." + setting.name;
      EXPECT_THAT(Configuration(start + path + " = " + of_type(setting) + "\n").problems(),
                  Contains("3 subscription.a." + path +
                           ": is a setting of the subscription, not of its sink (write it below "
                           "[subscription.a])"));
    }
    for (const Setting& setting : kind.settings) {
      const std::string group = setting.name.substr(0, setting.name.find('.'));
      const bool both = std::any_of(subscription_settings().begin(), subscription_settings().end(),
                                    [&](const auto& row) { return row.setting.name == group; });
      if (both) continue;
      EXPECT_THAT(Configuration(start + setting.name + " = \"x\"\n").problems(),
                  Contains("3 subscription.a." + group +
                           ": is a setting of the sink, not of the subscription (write it below "
                           "[subscription.a." +
                           kind.name + "])"));
    }
  }
}

TEST(Subscriptions, a_setting_of_another_sink_or_section_is_told_where_it_belongs) {
  OUTBOX_NEEDS_KAFKA_SINK();
  const std::pair<std::string, std::string> cases[] = {
      {kFile + "file.path = \"x\"\nbrokers = \"b:1\"\n",
       "4 subscription.a.brokers: is a setting of sink kafka (the sink of this subscription is file)"},
      {kKafka + "socket.timeout.ms = 5\n",
       "4 subscription.a.socket: is a setting of the sink, not of the subscription (write it below "
       "[subscription.a.kafka])"},
      {kFile + "file.path = \"x\"\npage = 5\n",
       "4 unknown setting subscription.a.page (did you mean relay.page?)"},
      {"[subscription.\"a.b\"]\nsink = \"kafka\"\nkafka.brokers = \"b:1\"\nkafka.topic = \"x\"\n",
       "4 subscription.a.b.kafka.topic: is a setting of the subscription, not of its sink (write it "
       "below [subscription.\"a.b\"])"},
      {"[kafka]\nbrokers = \"b:1\"\n",
       "1 unknown section kafka (settings of this sink are below [subscription.NAME.kafka])"},
      {"[relay]\ntopic = \"x\"\n",
       "2 unknown setting relay.topic (write it below [subscription.NAME])"},
      {"brokers = \"b:1\"\n",
       "1 unknown setting brokers (it is a setting of sink kafka: write it below "
       "[subscription.NAME.SINK])"},
  };
  for (const auto& [text, problem] : cases)
    EXPECT_THAT(Configuration(text).problems(), Contains(problem)) << text;
}

TEST(Subscriptions, all_problems_of_one_are_found_each_at_its_place) {
  Configuration file(
      "[subscription.a]\nsink = \"file\"\ntopic = \"{nope}\"\nkey = \"{nope}\"\nevent_types = [\"\"]\n"
      "format = \"xml\"\nheaders = { \"outbox-id\" = \"1\" }\n[subscription.a.file]\npath = \"\"\nmode = \"x\"\n"
      "fsync = \"often\"\n");
  EXPECT_THAT(file.problems(), ElementsAre(StartsWith("6 subscription.a.format:"),
                                           StartsWith("5 subscription.a.event_types:"),
                                           StartsWith("3 subscription.a.topic:"),
                                           StartsWith("4 subscription.a.key:"),
                                           StartsWith("7 subscription.a.headers:"),
                                           StartsWith("9 subscription.a.file.path: is empty"),
                                           StartsWith("10 subscription.a.file.mode:"),
                                           StartsWith("11 subscription.a.file.fsync:")));
}

TEST(Subscriptions, the_sink_decides_what_its_settings_mean) {
  EXPECT_THAT(Configuration(kFile).problems(),
              ElementsAre(StartsWith("1 subscription.a.file.path: is missing")));
  EXPECT_THAT(Configuration("[subscription.a]\ntopic = \"x\"\n").problems(),
              ElementsAre(StartsWith("1 subscription.a.sink: is missing")));
  EXPECT_THAT(
      Configuration(kFile + "file.path = \"x\"\nnull.y = 1\n").problems(),
      ElementsAre(StartsWith("4 subscription.a.null: settings of a sink that is not used")));
}

TEST(Subscriptions, several_properties_of_a_client_library_are_refused_at_once) {
  OUTBOX_NEEDS_KAFKA_SINK();
  EXPECT_THAT(
      Configuration(
          kKafka +
          "kafka.acks = 1\nkafka.linger = 5\nkafka.compresion.type = \"lz4\"\ntopic = \"a b\"\n")
          .problems(),
      ElementsAre(
          HasSubstr("kafka.linger: expected a duration"), HasSubstr("kafka.acks: \"1\" is refused"),
          HasSubstr("did you mean compression.type?"), StartsWith("7 subscription.a.topic:")));
}

TEST(Subscriptions, destinations_that_cannot_work) {
  OUTBOX_NEEDS_KAFKA_SINK();
  for (const char* brokers : {"", ",", "b:9092,", "b:many", "b:0", ":9092", "b:99999"}) {
    EXPECT_THAT(Configuration("[subscription.a]\nsink = \"kafka\"\nkafka.brokers = \"" +
                              std::string(brokers) + "\"\n")
                    .problems(),
                ElementsAre(StartsWith("3 subscription.a.kafka.brokers:")))
        << brokers;
  }
  for (const char* brokers : {"b", "b:1, c:2", "SSL://b:1", "[::1]:9092"}) {
    EXPECT_THAT(Configuration("[subscription.a]\nsink = \"kafka\"\nkafka.brokers = \"" +
                              std::string(brokers) + "\"\n")
                    .problems(),
                IsEmpty())
        << brokers;
  }
  for (const char* topic : {"", "a/b", "..", "{{x}}", "a b.{event_type}"}) {
    EXPECT_THAT(Configuration(kKafka + "topic = \"" + topic + "\"\n").problems(),
                ElementsAre(StartsWith("4 subscription.a.topic:")))
        << topic;
  }
}

TEST(Subscriptions, a_thorough_check_looks_at_the_directory) {
  Configuration file(kFile + "file.path = \"no/such/x.jsonl\"\n");
  EXPECT_THAT(file.problems(), IsEmpty());
  file.request().thorough = true;
  EXPECT_THAT(file.problems(),
              ::testing::Contains(StartsWith("3 subscription.a.file.path: there is no directory")));
}

TEST(Subscriptions, two_cannot_share_a_file) {
  EXPECT_THAT(
      Configuration(kFile +
                    "file.path = \"x\"\n[subscription.b]\nsink = \"file\"\nfile.path = \"./x\"\n")
          .problems(),
      ElementsAre(StartsWith("6 subscription.b.file.path: subscription a has the same value")));
}

TEST(Subscriptions, every_setting_of_the_sink_is_shown_with_its_origin) {
  Configuration file(
      "[subscription.a]\nsink = \"file\"\n[subscription.a.file]\npath = \"/x\"\nfsync = \"never\"\n");
  EXPECT_EQ(file.shown("subscription.a.file", "fsync"), "\"never\" outbox.toml:5");
  EXPECT_EQ(file.shown("subscription.a.file", "mode"), "\"0640\" default");
  EXPECT_EQ(file.shown("subscription.a", "format"), "\"raw\" default");
}

TEST(Subscriptions, what_a_reference_gave_is_used_and_not_shown) {
  Configuration file(kFile +
                     "topic = \"${env:WHAT}.x\"\nheaders = { t = \"${env:WHAT}\", u = \"seen\" }\n"
                     "file.path = \"/tmp/${env:WHAT}\"\n");
  file.set("WHAT", "hush");
  const Loaded loaded = file.loaded();
  const SubscriptionSpec& spec = loaded.config.relay.subscriptions.front();
  EXPECT_EQ(spec.topic, "hush.x");
  EXPECT_EQ(spec.headers, (Texts{{"t", "hush"}, {"u", "seen"}}));
  EXPECT_EQ(spec.sink_settings, (Texts{{"path", "/tmp/${env:WHAT}"}})) << "resolved by the sink";
  EXPECT_EQ(file.shown("subscription.a", "topic"), "\"${env:WHAT}.x\" outbox.toml:3");
  EXPECT_EQ(file.shown("subscription.a.file", "path"), "\"/tmp/${env:WHAT}\" outbox.toml:5");
  EXPECT_THAT(loaded.references, ElementsAre("subscription.a.file.path", "subscription.a.headers.t",
                                             "subscription.a.topic"));
  EXPECT_EQ(shown_value(loaded, "a", "topic", "hush.x"), "***");
  EXPECT_EQ(shown_value(loaded, "a", "headers.t", "hush"), "***");
  EXPECT_EQ(shown_value(loaded, "a", "headers.u", "seen"), "seen");
  EXPECT_EQ(shown_value(loaded, "a", "file.path", "${env:WHAT}"), "${env:WHAT}");
  EXPECT_EQ(shown_value(loaded, "b", "file.path", "/tmp/x"), "/tmp/x");
}

TEST(Subscriptions, a_relative_path_in_a_reference_is_stored_as_an_absolute_one) {
  Configuration file(kFile + "file.path = \"/tmp/${file:name}\"\n");
  file.request().resolve_subscriptions = false;
  const Loaded loaded = file.loaded();
  const std::string folder =
      std::filesystem::absolute(std::filesystem::path(loaded.file).parent_path());
  EXPECT_EQ(loaded.config.relay.subscriptions.front().sink_settings,
            (Texts{{"path", "/tmp/${file:" + folder + "/name}"}}));
}

TEST(Subscriptions, without_resolving_a_missing_reference_does_no_harm) {
  Configuration file(kFile + "file.path = \"${env:NOT_SET_ANYWHERE}\"\n");
  EXPECT_THAT(
      file.problems(),
      ElementsAre(HasSubstr("${env:NOT_SET_ANYWHERE}: the environment variable is not set")));
  file.request().resolve_subscriptions = false;
  EXPECT_THAT(file.problems(), IsEmpty());
}

}  // namespace
}  // namespace outbox::config
