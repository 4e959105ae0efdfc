// Tests which columns of a table can be adopted.
#include "store/postgres/adopt_shape.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outbox::store::postgres {
namespace {

using ::testing::HasSubstr;

AdoptTable table() {
  AdoptTable table;
  table.name = "public.shop_outbox";
  std::int32_t number = 0;
  const auto add = [&](const char* name, const char* type) {
    AdoptColumn column;
    column.name = name;
    column.type = type;
    column.number = ++number;
    column.unique = number == 1;
    table.columns.push_back(std::move(column));
  };
  add("id", "bigint");
  add("aggregate_type", "text");
  add("aggregate_id", "text");
  add("event_type", "text");
  add("payload", "jsonb");
  add("created_at", "timestamp with time zone");
  add("sent", "boolean");
  add("tenant", "text");
  return table;
}

AdoptColumn& column(AdoptTable& table, const std::string& name) {
  for (AdoptColumn& one : table.columns) {
    if (one.name == name) return one;
  }
  throw std::invalid_argument(name);
}

AdoptionOptions with_tenant() {
  AdoptionOptions options;
  options.headers = {{"tenant", "x-tenant"}};
  return options;
}

TEST(AdoptShape, a_column_that_a_trigger_reads_as_null_is_refused) {
  for (const char* const name : {"id", "aggregate_id", "payload", "created_at", "tenant"}) {
    AdoptTable one = table();
    EXPECT_TRUE(recognise(one, with_tenant()).has_value());
    column(one, name).generated = Generated::stored;
    EXPECT_TRUE(recognise(one, with_tenant()).has_value()) << name;
    column(one, name).generated = Generated::by_reading;
    const auto refused = recognise(one, with_tenant());
    ASSERT_FALSE(refused.has_value()) << name;
    EXPECT_THAT(refused.error().message, HasSubstr("generated when it is read"));
  }
}

TEST(AdoptShape, a_type_that_is_anybody_s_is_refused_where_it_is_read) {
  for (const char* const name : {"id", "aggregate_id", "payload", "sent", "tenant"}) {
    AdoptTable one = table();
    column(one, name).foreign = true;
    const auto refused = recognise(one, with_tenant());
    ASSERT_FALSE(refused.has_value()) << name;
    EXPECT_THAT(refused.error().message, HasSubstr("rights of the owner of the log"));
  }
  AdoptTable one = table();
  column(one, "tenant").foreign = true;
  EXPECT_TRUE(recognise(one, {}).has_value());
}

TEST(AdoptShape, a_mark_that_cannot_be_written_is_refused) {
  for (const auto generated : {Generated::stored, Generated::by_reading}) {
    AdoptTable one = table();
    column(one, "sent").generated = generated;
    const auto refused = recognise(one, {});
    ASSERT_FALSE(refused.has_value());
    EXPECT_THAT(refused.error().message, HasSubstr("'sent' is generated"));
  }
}

}  // namespace
}  // namespace outbox::store::postgres
