// Tests whether the function of an adopted table's trigger still fits the table's columns.
#include "store/postgres/adopt_changes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outbox::store::postgres {
namespace {

using Columns = std::vector<AdoptColumn>;

AdoptColumn column(std::string name, std::string type, std::int32_t number) {
  AdoptColumn one;
  one.name = std::move(name);
  one.type = std::move(type);
  one.number = number;
  return one;
}

AdoptShape shape() {
  AdoptShape shape;
  shape.columns = {{"id", "id"},         {"aggregate_id", "key"}, {"payload", "body"},
                   {"headers", "meta"},  {"occurred_at", "made"}, {"sent", "done"},
                   {"order", "position"}};
  shape.headers = {{"tenant", "x-tenant"}};
  shape.mark = SentMark::flag;
  return shape;
}

Columns columns() {
  return {column("id", "uuid", 1),
          column("key", "text", 2),
          column("body", "jsonb", 3),
          column("meta", "jsonb", 4),
          column("made", "timestamp with time zone", 5),
          column("done", "boolean", 6),
          column("position", "bigint", 7),
          column("tenant", "text", 8),
          column("unused", "text", 9)};
}

std::vector<ColumnChange> changes(const Columns& now) {
  return changed_columns(shape(), columns(), now);
}

Columns with_type(const std::string& name, const std::string& type) {
  Columns now = columns();
  for (AdoptColumn& one : now) {
    if (one.name == name) one.type = type;
  }
  return now;
}

Columns without(const std::string& name) {
  Columns now = columns();
  std::erase_if(now, [&](const AdoptColumn& one) { return one.name == name; });
  return now;
}

TEST(AdoptChanges, the_same_columns_have_none) { EXPECT_TRUE(changes(columns()).empty()); }

TEST(AdoptChanges, the_columns_that_were_stored_are_read_back) {
  const Columns back = parse_columns(columns_json(columns()));
  ASSERT_EQ(back.size(), columns().size());
  EXPECT_EQ(back[2].name, "body");
  EXPECT_EQ(back[2].type, "jsonb");
  EXPECT_EQ(back[2].number, 3);
}

TEST(AdoptChanges, a_column_that_the_function_reads_is_missed) {
  for (const char* const name : {"id", "key", "body", "meta", "made", "done", "tenant"}) {
    const auto found = changes(without(name));
    ASSERT_EQ(found.size(), 1U) << name;
    EXPECT_EQ(found[0].column, name);
    EXPECT_FALSE(found[0].type_now || found[0].renamed_to);
    EXPECT_EQ(found[0].says_sent, std::string(name) == "done");
  }
}

TEST(AdoptChanges, other_columns_may_go) {
  EXPECT_TRUE(changes(without("unused")).empty());
  EXPECT_TRUE(changes(without("position")).empty());
}

TEST(AdoptChanges, a_new_name_is_told_by_the_number) {
  Columns now = columns();
  now[2].name = "payload";
  ASSERT_EQ(changes(now).size(), 1U);
  EXPECT_EQ(changes(now)[0].renamed_to, "payload");
  // If it also has another type, it is another column.
  now[2].type = "text";
  EXPECT_FALSE(changes(now)[0].renamed_to);
}

TEST(AdoptChanges, numbers_that_a_restore_has_changed_do_not_matter) {
  Columns now = columns();
  for (AdoptColumn& one : now) one.number += 10;
  EXPECT_TRUE(changes(now).empty());
}

TEST(AdoptChanges, types_that_the_function_was_not_made_for) {
  for (const auto& [name, type] :
       std::vector<std::pair<std::string, std::string>>{{"id", "text"},
                                                        {"body", "bytea"},
                                                        {"body", "text"},
                                                        {"meta", "text"},
                                                        {"made", "bigint"},
                                                        {"done", "text"}}) {
    const auto found = changes(with_type(name, type));
    ASSERT_EQ(found.size(), 1U) << name;
    EXPECT_EQ(found[0].type_now, type);
  }
}

TEST(AdoptChanges, types_that_it_reads_alike) {
  for (const auto& [name, type] :
       std::vector<std::pair<std::string, std::string>>{{"key", "bigint"},
                                                        {"body", "json"},
                                                        {"made", "timestamp without time zone"},
                                                        {"tenant", "integer"}})
    EXPECT_TRUE(changes(with_type(name, type)).empty()) << name;
  AdoptShape words = shape();
  words.mark = SentMark::word;
  EXPECT_TRUE(changed_columns(words, columns(), with_type("done", "text")).empty());
}

TEST(AdoptChanges, what_was_said_is_kept_but_for_columns_that_are_gone) {
  AdoptShape said = shape();
  said.said.columns = {{"payload", "body"}, {"occurred_at", "made"}, {"order", ""}};
  said.said.values = {{"content_type", "text/plain"}};
  said.said.headers = {{"tenant", "x-tenant"}};
  said.said.sent_values = {"DONE", "gone"};
  const AdoptShape stored = parse_adopt_shape(to_json(said));
  const std::vector<std::string> all{
      "--column", "occurred_at=made", "--column",      "order=",
      "--column", "payload=body",     "--value",       "content_type=text/plain",
      "--header", "tenant=x-tenant",  "--sent-values", "DONE,gone"};
  EXPECT_EQ(options_again(stored, {}), all);
  EXPECT_EQ(options_again(stored, changes(with_type("body", "bytea"))), all);
  EXPECT_EQ(options_again(stored, changes(without("tenant"))).size(), all.size() - 2);
}

TEST(AdoptChanges, columns_that_are_gone_are_left_out_if_they_can_be) {
  const auto left = [](const std::string& column, bool copying) {
    AdoptTable table;
    table.columns = without(column);
    AdoptShape rest = shape();
    leave_out_gone(rest, table, copying);
    return rest;
  };
  EXPECT_EQ(left("made", false).column("occurred_at"), nullptr);
  EXPECT_EQ(left("meta", false).column("headers"), nullptr);
  EXPECT_TRUE(left("tenant", false).headers.empty());
  EXPECT_EQ(left("position", false).column("order"), nullptr);
  EXPECT_NE(left("position", true).column("order"), nullptr);
  EXPECT_NE(left("body", false).column("payload"), nullptr);
  EXPECT_NE(left("done", false).column("sent"), nullptr);
}

}  // namespace
}  // namespace outbox::store::postgres
