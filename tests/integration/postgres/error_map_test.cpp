// Tests what the table of SQLSTATEs says that the caller can do.
#include "store/postgres/error_map.hpp"

#include <gmock/gmock.h>

#include <vector>

#include "pg/errors.hpp"
#include "store/postgres/query.hpp"
#include "store/schema_name.hpp"

namespace outbox::store::postgres {
namespace {

struct Case {
  const char* sqlstate;
  Errc code;
  Remedy remedy;
  Effect effect;
};

TEST(ErrorMap, says_what_to_redo) {
  const std::vector<Case> cases{
      {"08006", Errc::unavailable, Remedy::reconnect, Effect::unknown},
      {"08P01", Errc::internal, Remedy::reconnect, Effect::unknown},
      {"57P01", Errc::unavailable, Remedy::reconnect, Effect::unknown},
      {"57P02", Errc::unavailable, Remedy::reconnect, Effect::unknown},
      {"57P03", Errc::unavailable, Remedy::reconnect, Effect::none},
      {"57P05", Errc::unavailable, Remedy::reconnect, Effect::none},
      {"57014", Errc::deadline_exceeded, Remedy::retry_transaction, Effect::none},
      {"25006", Errc::unavailable, Remedy::reconnect, Effect::none},
      {"25P02", Errc::internal, Remedy::retry_transaction, Effect::none},
      {"25P03", Errc::unavailable, Remedy::reconnect, Effect::none},
      {"26000", Errc::unavailable, Remedy::retry_transaction, Effect::none},
      {"42P05", Errc::unavailable, Remedy::retry_transaction, Effect::none},
      {"40001", Errc::unavailable, Remedy::retry_transaction, Effect::none},
      {"40003", Errc::unavailable, Remedy::retry_transaction, Effect::unknown},
      {"40P01", Errc::unavailable, Remedy::retry_transaction, Effect::none},
      {"55P03", Errc::unavailable, Remedy::retry_transaction, Effect::none},
      {"55000", Errc::unsupported, Remedy::fix, Effect::none},
      {"53300", Errc::unavailable, Remedy::reconnect, Effect::none},
      {"53100", Errc::unavailable, Remedy::retry_transaction, Effect::none},
      {"28P01", Errc::permission_denied, Remedy::fix, Effect::none},
      {"3D000", Errc::not_found, Remedy::fix, Effect::none},
      {"3F000", Errc::not_found, Remedy::fix, Effect::none},
      {"42P01", Errc::not_found, Remedy::fix, Effect::none},
      {"42501", Errc::permission_denied, Remedy::fix, Effect::none},
      {"42601", Errc::internal, Remedy::fix, Effect::none},
      {"23505", Errc::already_exists, Remedy::fix, Effect::none},
      {"23514", Errc::invalid_argument, Remedy::fix, Effect::none},
      {"22023", Errc::invalid_argument, Remedy::fix, Effect::none},
      {"22001", Errc::too_large, Remedy::fix, Effect::none},
      {"OX001", Errc::unavailable, Remedy::reconnect, Effect::none},
      {"XX001", Errc::corrupt, Remedy::fix, Effect::none},
      {"XX000", Errc::internal, Remedy::fix, Effect::none},
  };
  for (const Case& one : cases) {
    const Error error = map_sqlstate(one.sqlstate, "append settlements", "said");
    EXPECT_EQ(error.code, one.code) << one.sqlstate;
    EXPECT_EQ(error.remedy, one.remedy) << one.sqlstate;
    EXPECT_EQ(error.effect, one.effect) << one.sqlstate;
    EXPECT_EQ(error.origin, std::string("pg:") + one.sqlstate);
    EXPECT_EQ(error.message, "append settlements: said");
  }
}

TEST(ErrorMap, an_old_schema_is_told_to_migrate) {
  EXPECT_EQ(map_sqlstate("42P01", "x", "relation \"outbox.event\" does not exist").hint,
            "run: outbox migrate");
}

TEST(ErrorMap, a_message_is_one_line) { EXPECT_EQ(pg::one_line("a\n\tb\n\n"), "a; b"); }

TEST(SchemaName, only_plain_names) {
  for (const char* good : {"outbox", "_x", "Outbox_2"})
    EXPECT_TRUE(check_schema_name(good)) << good;
  for (const char* bad : {"", "2x", "a-b", "a b", "a\"b", "a.b", "\xC3\xBC"})
    EXPECT_FALSE(check_schema_name(bad)) << bad;
  EXPECT_TRUE(check_schema_name(std::string(63, 'a')));
  EXPECT_FALSE(check_schema_name(std::string(64, 'a')));
  EXPECT_FALSE(check_schema_name(std::string_view("a\0b", 3)));
}

TEST(Query, has_the_schema_in_place_and_a_name_of_its_own_per_text) {
  const Query one =
      prepared("what", "SELECT '{name}' FROM {schema}.event JOIN {schema}.lane", "Select");
  EXPECT_EQ(one.sql, "SELECT 'Select' FROM \"Select\".event JOIN \"Select\".lane");
  EXPECT_NE(
      one.handle,
      prepared("what", "SELECT '{name}' FROM {schema}.event JOIN {schema}.lane", "other").handle);
  EXPECT_EQ(
      one.handle,
      prepared("else", "SELECT '{name}' FROM {schema}.event JOIN {schema}.lane", "Select").handle);
}

}  // namespace
}  // namespace outbox::store::postgres
