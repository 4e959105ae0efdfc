#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demo/demo.hpp"

namespace outbox::demo {
namespace {

using testing::HasSubstr;

std::string complaint(const DemoOptions& options) {
  const Status status = check_options(options);
  return status ? "" : status.error().text();
}

TEST(DemoOptions, the_defaults_are_fine) { EXPECT_EQ(complaint({}), ""); }

TEST(DemoOptions, names_what_is_out_of_range) {
  EXPECT_THAT(complaint({.seconds = 0}), HasSubstr("--seconds 0"));
  EXPECT_THAT(complaint({.seconds = 3601}), HasSubstr("--seconds 3601"));
  EXPECT_THAT(complaint({.writers = 0}), HasSubstr("--writers 0"));
  EXPECT_THAT(complaint({.writers = 65}), HasSubstr("--writers 65"));
  EXPECT_THAT(complaint({.kills = -1}), HasSubstr("--kills -1"));
  EXPECT_THAT(complaint({.seconds = 2, .kills = 5}), HasSubstr("0 to 4"));
  EXPECT_EQ(complaint({.kills = 0}), "");
}

TEST(DemoOptions, knows_its_sinks) {
  EXPECT_THAT(complaint({.sink = "stdout"}), HasSubstr("file, kafka"));
#ifdef OUTBOX_WITH_KAFKA
  EXPECT_THAT(complaint({.sink = "kafka"}), HasSubstr("needs --brokers"));
  EXPECT_EQ(complaint({.sink = "kafka", .brokers = "localhost:9092"}), "");
#endif
  EXPECT_THAT(complaint({.brokers = "localhost:9092"}), HasSubstr("--brokers with --sink file"));
}

TEST(DemoOptions, a_store_is_not_shown_since_it_may_hold_a_password) {
  EXPECT_EQ(complaint({.store = "mysql://me:secret@host/db"}),
            "--store is not a URL of PostgreSQL or SQLite "
            "(hint: postgresql://USER@HOST/DATABASE, or sqlite:PATH)");
}

}  // namespace
}  // namespace outbox::demo
