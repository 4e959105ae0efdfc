// Settings are checked before anything is opened, and each complaint says what to do.
#include "sink/registry.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "sink/settings.hpp"

namespace outbox::test {
namespace {

using Given = std::map<std::string, std::string>;

SubscriptionSpec spec(std::string sink, Given settings = {}) {
  SubscriptionSpec made;
  made.name = "orders";
  made.sink = std::move(sink);
  made.sink_settings = std::move(settings);
  return made;
}

/// "message (hint: ...)" of what is wrong; empty when nothing is.
std::string complaint(const SubscriptionSpec& spec) {
  const Status checked = sink::check_settings(spec);
  const auto made = sink::make_sink(spec);
  EXPECT_EQ(checked.has_value(), made.has_value()) << "check_settings and make_sink disagree";
  return checked ? "" : checked.error().text();
}

using testing::Test;

TEST(SinkRegistry, knows_its_sinks) {
  std::vector<std::string> names;
  for (const auto& info : sink::all_sinks()) names.push_back(info.name);
  for (const char* name : {"null", "stdout", "file"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
  for (const auto& info : sink::all_sinks()) {
    EXPECT_FALSE(info.help.empty());
    for (const auto& setting : info.settings)
      EXPECT_FALSE(setting.help.empty()) << info.name << "." << setting.name;
  }
}

TEST(SinkRegistry, every_default_is_a_valid_value) {
  EXPECT_EQ(complaint(spec("null")), "");
  EXPECT_EQ(complaint(spec("stdout")), "");
  EXPECT_EQ(complaint(spec("file", {{"path", "/tmp/x"}})), "");
}

TEST(SinkRegistry, names_the_nearest_sink) {
  EXPECT_EQ(complaint(spec("flie")), "sink: \"flie\" is not known (hint: did you mean file?)");
  EXPECT_NE(complaint(spec("pigeon")).find("known are null, stdout, file"), std::string::npos);
}

TEST(SinkRegistry, names_the_nearest_setting) {
  EXPECT_EQ(complaint(spec("file", {{"path", "/tmp/x"}, {"fsnyc", "batch"}})),
            "file.fsnyc: no such setting (hint: did you mean fsync?)");
  EXPECT_NE(complaint(spec("null", {{"path", "x"}})).find("has no settings"), std::string::npos);
}

TEST(SinkRegistry, says_what_is_missing) {
  EXPECT_NE(complaint(spec("file")).find("file.path: is missing"), std::string::npos);
  EXPECT_NE(complaint(spec("file", {{"path", ""}})).find("file.path: \"\" is empty"),
            std::string::npos);
}

TEST(SinkRegistry, checks_how_a_file_is_synced) {
  for (const char* good : {"batch", "never", "interval:100ms", "interval:1s"}) {
    EXPECT_EQ(complaint(spec("file", {{"path", "x"}, {"fsync", good}})), "") << good;
  }
  for (const char* bad : {"always", "interval:", "interval:soon", "interval:1h", ""}) {
    EXPECT_NE(complaint(spec("file", {{"path", "x"}, {"fsync", bad}})), "") << bad;
  }
}

TEST(SinkRegistry, checks_the_mode_of_a_file) {
  for (const char* good : {"0640", "600", "0777"}) {
    EXPECT_EQ(complaint(spec("file", {{"path", "x"}, {"mode", good}})), "") << good;
  }
  for (const char* bad : {"0440", "8", "rw-r--r--", "", "1777"}) {
    EXPECT_NE(complaint(spec("file", {{"path", "x"}, {"mode", bad}})), "") << bad;
  }
}

TEST(SinkRegistry, a_custom_sink_is_the_applications) {
  EXPECT_TRUE(sink::check_settings(spec("custom", {{"anything", "goes"}})));
  EXPECT_FALSE(sink::make_sink(spec("custom")));
}

TEST(SinkSettings, durations_have_the_units_that_all_settings_have) {
  const sink::SinkInfo info{.name = "x",
                            .help = "",
                            .settings = {{.name = "wait",
                                          .type = "duration",
                                          .default_value = "1s",
                                          .required = false,
                                          .help = ""}}};
  for (const auto& [text, length] :
       std::map<std::string, std::chrono::microseconds>{{"250us", std::chrono::microseconds(250)},
                                                        {"5min", std::chrono::minutes(5)},
                                                        {"7d", std::chrono::hours(168)},
                                                        {"0", std::chrono::microseconds(0)}}) {
    const auto settings = sink::Settings::read(info, {{"wait", text}});
    ASSERT_TRUE(settings) << text;
    EXPECT_EQ(settings->duration("wait"), length) << text;
  }
  const auto wrong = sink::Settings::read(info, {{"wait", "10"}});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "x.wait: \"10\" is not a duration like 500ms, 10s, 5min or 7d");
}

}  // namespace
}  // namespace outbox::test
