// Settings are checked before anything is opened, and each error has a hint.
#include "sink/registry.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "sink/kind.hpp"
#include "support/temp_dir.hpp"

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

/// What is wrong, as "message (hint: ...)"; empty if nothing is.
std::string complaint(const SubscriptionSpec& spec) {
  const Status checked = sink::check_settings(spec);
  const auto made = sink::make_sink(spec);
  EXPECT_EQ(checked.has_value(), made.has_value()) << "check_settings and make_sink disagree";
  return checked ? "" : checked.error().text();
}

using testing::Test;

TEST(SinkRegistry, knows_its_sinks) {
  for (const char* name : {"null", "stdout", "file"})
    EXPECT_NE(sink::find_kind(name), nullptr) << name;
  for (const auto& kind : sink::kinds()) {
    EXPECT_FALSE(kind.help.empty());
    for (const auto& setting : kind.settings)
      EXPECT_FALSE(setting.help.empty()) << kind.name << "." << setting.name;
  }
}

TEST(SinkRegistry, every_default_is_a_valid_value) {
  EXPECT_EQ(complaint(spec("null")), "");
  EXPECT_EQ(complaint(spec("stdout")), "");
  EXPECT_EQ(complaint(spec("file", {{"path", "/tmp/x"}})), "");
}

TEST(SinkRegistry, a_reference_is_replaced_where_the_sink_is_made) {
  const TempDir folder;
  const auto with_reference = spec("file", {{"path", "${env:OUTBOX_TEST_PATH}"}});
  ::unsetenv("OUTBOX_TEST_PATH");
  EXPECT_TRUE(sink::check_settings(with_reference)) << "another machine may have it";
  FieldErrors here;
  sink::find_kind("file")->check_here(with_reference, here);
  EXPECT_TRUE(here.of("file.path"));
  const auto none = sink::make_sink(with_reference);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().text(),
            "file.path: ${env:OUTBOX_TEST_PATH}: the environment variable is not set (hint: set "
            "OUTBOX_TEST_PATH)");
  ::setenv("OUTBOX_TEST_PATH", folder.file("events.jsonl").c_str(), 1);
  const auto made = sink::make_sink(with_reference);
  ASSERT_TRUE(made);
  EXPECT_TRUE((*made)->open());
  EXPECT_TRUE(std::filesystem::exists(folder.file("events.jsonl")));
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
  EXPECT_NE(complaint(spec("file", {{"path", ""}})).find("file.path: is empty"), std::string::npos);
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

TEST(SinkSettings, all_faults_are_found_each_with_its_field) {
  FieldErrors errors;
  sink::check(spec("file", {{"path", "~/x"}, {"mode", "8"}, {"fsnyc", "batch"}}), errors);
  std::vector<std::string> found;
  for (const FieldError& one : errors) found.push_back(one.field + ": " + one.what);
  EXPECT_EQ(found,
            (std::vector<std::string>{"file.path: begins with ~, which only a shell expands",
                                      "file.fsnyc: no such setting",
                                      "file.mode: \"8\" is not a mode that lets the relay write"}));
}

struct Printer {
  std::chrono::microseconds wait{std::chrono::seconds(1)};
};

Printer read(const sink::Declaration<Printer>& printer, const std::string& wait,
             FieldErrors& errors) {
  return sink::read_settings(printer, sink::resolve_settings("x", {{"wait", wait}}), errors);
}

TEST(SinkSettings, durations_have_the_units_that_all_settings_have) {
  const sink::Declaration<Printer> printer{.name = "x",
                                           .help = "prints",
                                           .rows = {{"wait", &Printer::wait, "how long"}},
                                           .make = nullptr};
  for (const auto& [text, length] :
       std::map<std::string, std::chrono::microseconds>{{"250us", std::chrono::microseconds(250)},
                                                        {"5min", std::chrono::minutes(5)},
                                                        {"7d", std::chrono::hours(168)},
                                                        {"0", std::chrono::microseconds(0)}}) {
    FieldErrors errors;
    EXPECT_EQ(read(printer, text, errors).wait, length) << text;
    EXPECT_TRUE(errors.empty()) << text;
  }
  FieldErrors errors;
  EXPECT_EQ(read(printer, "10", errors).wait, std::chrono::seconds(1));
  EXPECT_EQ(errors.status().error().message,
            "x.wait: expected a duration such as \"15s\", found \"10\"");
}

TEST(SinkRegistry, says_which_destinations_can_be_read_back) {
  const auto refusal = [](const char* name) {
    const Status status = sink::check_read_back(spec(name));
    return status ? "" : status.error().text();
  };
  EXPECT_EQ(refusal("file"), "");
  EXPECT_EQ(refusal("null").find("subscription orders: a null sink cannot be read back (hint: "),
            0U);
  EXPECT_NE(refusal("stdout"), "");
  EXPECT_NE(refusal("custom"), "");
  EXPECT_NE(refusal("pigeon").find("is not known"), std::string::npos);
#ifdef OUTBOX_WITH_KAFKA
  EXPECT_EQ(refusal("kafka"), "");
#else
  EXPECT_NE(refusal("kafka").find("build with -DOUTBOX_WITH_KAFKA=ON"), std::string::npos);
#endif
}

TEST(SinkRegistry, a_file_is_read_back) {
  const TempDir folder;
  const EventId id = EventId::generate();
  std::ofstream(folder.file("lines")) << R"({"topic":"t","id":")" << id.str() << "\"}\nnonsense\n"
                                      << id.str() << "\n";
  std::vector<EventId> read;
  const auto take = [&](std::uint32_t part, const EventId& one) {
    EXPECT_EQ(part, 0U);
    read.push_back(one);
  };
  const auto parts = sink::read_back(spec("file", {{"path", folder.file("lines")}}), take);
  ASSERT_TRUE(parts) << parts.error().text();
  ASSERT_EQ(parts->size(), 1U);
  EXPECT_TRUE(parts->front().certain);
  EXPECT_EQ(parts->front().removed, 0);
  EXPECT_EQ(read, (std::vector{id, id}));
  const auto none = sink::read_back(spec("file", {{"path", folder.file("none")}}), take);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("subscription orders: cannot read"), std::string::npos);
}

}  // namespace
}  // namespace outbox::test
