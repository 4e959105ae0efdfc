// Tests the findings about adopted tables, which are made from facts.
#include "findings.hpp"
#include "health/doctor/store.hpp"

namespace outbox::health {
namespace {

using store::AdoptionFacts;
using store::AdoptionFault;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const StoreName kAdoptionsName{.shown = "postgresql://app@db/shop", .options = " -c shop.toml"};

AdoptionFacts forwarding() {
  return {.row = {.id = 3,
                  .table = "public.shop_outbox",
                  .state = "forwarding",
                  .cut_lsn = "0/1",
                  .begun_us = 1'700'000'000'000'000,
                  .switched_us = 1'700'000'001'000'000},
          .marks_sent = true,
          .took_pending = true,
          .has_order = true};
}

AdoptionFacts broken(AdoptionFault fault, std::string at = {}) {
  AdoptionFacts one = forwarding();
  one.row.state = "broken";
  one.row.fault = fault;
  one.row.fault_at = std::move(at);
  return one;
}

Findings judged(AdoptionFacts one) {
  Findings findings;
  judge(store::AdoptionsFacts{.tables = {std::move(one)}, .silent = {}}, kAdoptionsName, findings);
  return findings;
}

Finding only(AdoptionFacts one) { return complaint(judged(std::move(one)), "adoption"); }

TEST(DoctorAdoptions, no_table_and_tables_that_are_forwarded_are_in_order) {
  Findings none;
  judge(store::AdoptionsFacts{}, kAdoptionsName, none);
  expect_in_order(none, "adoption");
  expect_in_order(judged(forwarding()), "adoption");
  Findings two;
  judge(store::AdoptionsFacts{.tables = {forwarding(), forwarding()}, .silent = {}}, kAdoptionsName,
        two);
  EXPECT_EQ(two.all().front().what, "the rows of 2 tables are forwarded");
}

TEST(DoctorAdoptions, a_trigger_that_does_not_fire_loses_events) {
  for (const auto fault :
       {AdoptionFault::off, AdoptionFault::replica_only, AdoptionFault::no_trigger}) {
    const Finding one = only(broken(fault));
    EXPECT_EQ(one.severity, Severity::error);
    EXPECT_EQ(one.subject, "public.shop_outbox");
    EXPECT_THAT(one.reason, HasSubstr("no event of theirs is delivered"));
    EXPECT_EQ(one.command,
              "mark the rows that were forwarded before as sent, then: "
              "outbox adopt public.shop_outbox --undo --apply -c shop.toml && "
              "outbox adopt public.shop_outbox --apply -c shop.toml");
  }
  EXPECT_THAT(only(broken(AdoptionFault::off, "public.p1")).what,
              HasSubstr("is disabled on partition public.p1"));
}

TEST(DoctorAdoptions, a_table_without_a_mark_needs_rows_to_be_deleted) {
  AdoptionFacts one = broken(AdoptionFault::off);
  one.marks_sent = one.took_pending = false;
  const std::string command = only(one).command;
  EXPECT_THAT(command, StartsWith("delete the rows"));
  EXPECT_THAT(command, HasSubstr("--backlog all --apply"));

  // Without an order no row can be taken over.
  one.has_order = false;
  EXPECT_EQ(only(one).command,
            "stop what inserts into public.shop_outbox, then: "
            "outbox adopt public.shop_outbox --undo --apply -c shop.toml && "
            "outbox adopt public.shop_outbox --backlog none --apply -c shop.toml");
  EXPECT_THAT(only(one).reason, HasSubstr("deleted and inserted again"));
}

TEST(DoctorAdoptions, a_table_of_which_nothing_was_taken_over) {
  AdoptionFacts one = broken(AdoptionFault::off);
  one.took_pending = false;
  EXPECT_THAT(only(one).command, StartsWith("mark all rows but those inserted since then as sent"));
}

TEST(DoctorAdoptions, a_table_is_adopted_again_with_the_same_options) {
  AdoptionFacts one = broken(AdoptionFault::off);
  one.options = {"--column", "payload=the body", "--header", "tenant=x-tenant"};
  EXPECT_THAT(only(one).command,
              HasSubstr("outbox adopt public.shop_outbox --column 'payload=the body' --header "
                        "tenant=x-tenant --apply -c shop.toml"));
}

TEST(DoctorAdoptions, a_table_that_was_made_anew_has_no_row_that_was_forwarded) {
  const Finding one = only(broken(AdoptionFault::remade));
  EXPECT_EQ(one.severity, Severity::error);
  EXPECT_THAT(one.command, StartsWith("outbox adopt public.shop_outbox --undo --apply"));
}

TEST(DoctorAdoptions, a_table_that_was_dropped_can_be_forgotten) {
  const Finding one = only(broken(AdoptionFault::dropped));
  EXPECT_EQ(one.severity, Severity::warning);
  EXPECT_EQ(one.command, "outbox adopt public.shop_outbox --undo --apply -c shop.toml");
}

TEST(DoctorAdoptions, a_table_with_the_former_name_of_an_adopted_one_is_adopted_beside_it) {
  AdoptionFacts one = forwarding();
  one.row.table = "public.old_outbox";
  one.row.fault = AdoptionFault::replaced;
  one.row.fault_at = "public.shop_outbox";
  one.options = {"--header", "tenant=x-tenant"};
  const Finding found = only(one);
  EXPECT_EQ(found.severity, Severity::error);
  EXPECT_EQ(found.subject, "public.old_outbox");
  EXPECT_EQ(found.what, "another table has its former name, public.shop_outbox");
  EXPECT_THAT(found.reason, HasSubstr("rows inserted into public.shop_outbox are in it only"));
  EXPECT_EQ(found.command,
            "mark the rows that were forwarded before as sent, then: "
            "outbox adopt public.shop_outbox --header tenant=x-tenant --apply -c shop.toml");
  one.marks_sent = one.took_pending = one.has_order = false;
  EXPECT_THAT(only(one).command, StartsWith("stop what inserts into public.shop_outbox, then: "));

  // The adopted table, which has another name now, keeps its other findings.
  one.row.state = "copying";
  one.row.switched_us.reset();
  Findings both = judged(one);
  EXPECT_EQ(both.all().size(), 2U);
  EXPECT_EQ(both.all().back().command, "outbox adopt public.old_outbox --apply -c shop.toml");
}

TEST(DoctorAdoptions, one_that_was_not_finished_is_an_error_unless_it_is_being_finished) {
  AdoptionFacts one = forwarding();
  one.row.switched_us.reset();
  one.row.waiting = 12;
  for (const char* const state : {"copying", "draining"}) {
    one.row.state = state;
    one.row.running = false;
    const Finding left = only(one);
    EXPECT_EQ(left.severity, Severity::error) << state;
    EXPECT_THAT(left.what, HasSubstr("12 new rows wait"));
    EXPECT_EQ(left.command, "outbox adopt public.shop_outbox --apply -c shop.toml");
    one.row.running = true;
    EXPECT_EQ(only(one).severity, Severity::note) << state;
  }
}

TEST(DoctorAdoptions, columns_that_the_function_does_not_find) {
  AdoptionFacts one = forwarding();
  one.changes = {{.column = "pay\"load", .type = "jsonb", .renamed_to = "body"}};
  EXPECT_EQ(only(one).severity, Severity::error);
  EXPECT_THAT(only(one).reason, HasSubstr("every INSERT fails"));
  EXPECT_EQ(only(one).command,
            "ALTER TABLE public.shop_outbox RENAME COLUMN \"body\" TO \"pay\"\"load\";");
  one.changes = {{.column = "made", .type = "text"}};
  EXPECT_THAT(only(one).what, HasSubstr("made was dropped"));
  EXPECT_EQ(only(one).command, "outbox adopt public.shop_outbox --apply -c shop.toml");
  one.changes = {{.column = "key", .type = "text", .needed = true}};
  EXPECT_THAT(only(one).command, StartsWith("outbox adopt public.shop_outbox --undo --apply"));
  one.took_pending = false;
  EXPECT_THAT(only(one).command, StartsWith("stop what inserts into public.shop_outbox, then: "));
  EXPECT_THAT(only(one).command, HasSubstr("--backlog none --apply"));
  // Without this column no row could be marked as sent.
  one.changes = {{.column = "status", .type = "text", .says_sent = true}};
  EXPECT_EQ(only(one).command, "ALTER TABLE public.shop_outbox ADD COLUMN \"status\" text;");
}

TEST(DoctorAdoptions, columns_of_another_type) {
  AdoptionFacts one = forwarding();
  one.changes = {{.column = "payload", .type = "jsonb", .type_now = "bytea"}};
  EXPECT_THAT(only(one).what, HasSubstr("changed from jsonb to bytea"));
  EXPECT_EQ(only(one).command, "outbox adopt public.shop_outbox --apply -c shop.toml");
  one.changes = {{.column = "sent", .type = "boolean", .type_now = "text", .says_sent = true}};
  EXPECT_EQ(only(one).command,
            "ALTER TABLE public.shop_outbox ALTER COLUMN \"sent\" TYPE boolean USING "
            "\"sent\"::boolean;");
}

TEST(DoctorAdoptions, rows_that_arrive_by_replication_are_a_note) {
  AdoptionFacts one = forwarding();
  one.replicated = true;
  EXPECT_EQ(only(one).severity, Severity::note);
}

TEST(DoctorAdoptions, sessions_in_which_no_trigger_fires) {
  const auto silent = [](store::SilentSessions sessions) {
    Findings findings;
    judge(store::AdoptionsFacts{.tables = {forwarding()}, .silent = {std::move(sessions)}},
          kAdoptionsName, findings);
    return complaint(findings, "adoption");
  };
  EXPECT_EQ(silent({.login = "a", .database = ""}).severity, Severity::warning);
  EXPECT_EQ(silent({.login = "a", .database = ""}).command,
            "ALTER ROLE a RESET session_replication_role;");
  EXPECT_EQ(silent({.login = "a", .database = "d"}).command,
            "ALTER ROLE a IN DATABASE d RESET session_replication_role;");
  EXPECT_EQ(silent({.login = "", .database = "d"}).severity, Severity::error);
  EXPECT_EQ(silent({.login = "", .database = "d"}).command,
            "ALTER DATABASE d RESET session_replication_role;");
  EXPECT_THAT(silent({}).command, StartsWith("ALTER SYSTEM SET"));
}

}  // namespace
}  // namespace outbox::health
