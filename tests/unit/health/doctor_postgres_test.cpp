// Tests the findings about a PostgreSQL server, which are made from facts.
#include "base/error.hpp"
#include "findings.hpp"
#include "health/doctor/store.hpp"

namespace outbox::health {
namespace {

using store::HolderFacts;
using store::RoleFacts;
using ::testing::HasSubstr;

const StoreName kPostgresName{.shown = "postgresql://app@db/shop", .options = {}};

store::Definitions postgres_definitions() {
  return {{.part = "made by", .makes = "PostgreSQL 15"},
          {.part = "owner", .makes = "outbox_owner"},
          {.object = "table outbox.event", .makes = "CREATE TABLE outbox.event ()"},
          {.object = "table outbox.event",
           .part = "index event_by_seq",
           .makes = "DROP INDEX IF EXISTS outbox.event_by_seq; CREATE INDEX event_by_seq",
           .undoes = "DROP INDEX outbox.event_by_seq"},
          {.object = "table outbox.event",
           .part = "SELECT ON outbox.event",
           .grantee = "outbox_relay",
           .makes = "GRANT SELECT ON outbox.event TO outbox_relay",
           .undoes = "REVOKE SELECT ON outbox.event FROM outbox_relay"},
          {.object = "sequence outbox.event_seq",
           .makes = "ALTER SEQUENCE outbox.event_seq INCREMENT 1 CACHE 1 NO CYCLE"},
          {.object = "function outbox.prune",
           .part = "outbox.prune()",
           .makes = "CREATE OR REPLACE FUNCTION outbox.prune()",
           .undoes = "DROP FUNCTION outbox.prune()"},
          {.object = "function outbox.prune",
           .part = "EXECUTE ON FUNCTION outbox.prune()",
           .grantee = "PUBLIC",
           .makes = "REVOKE EXECUTE ON FUNCTION outbox.prune() FROM PUBLIC",
           .undoes = "GRANT EXECUTE ON FUNCTION outbox.prune() TO PUBLIC"}};
}

/// The facts of a server on which everything is in order.
store::PostgresFacts sound_server() {
  return {
      .schema = "outbox",
      .server = store::ServerFacts{.version = "15.4",
                                   .database = "shop",
                                   .login = "relay1",
                                   .standby = false,
                                   .superuser = false,
                                   .may_read = true,
                                   .sees_sessions = true,
                                   .pooler = false,
                                   .fsync = true,
                                   .full_page_writes = true,
                                   .synchronous_commit = "on"},
      .clock = store::ClockFacts{.before_us = 1'000, .store_us = 1'500, .after_us = 2'000},
      .version = store::SchemaState{.version = 8, .wanted = 8, .edited = {}},
      .log = store::LogFacts{.payload_limit = 1 << 20},
      .schema_facts =
          store::SchemaFacts{.wanted = postgres_definitions(), .found = postgres_definitions()},
      .sequences = std::vector<store::SequenceFacts>{},
      .roles = std::vector<RoleFacts>{},
      .partitions = store::PartitionFacts{.end = 100'000'000,
                                          .next_xid = 1'000'000,
                                          .width = 16'000'000,
                                          .xids_per_h = 2'500'000,
                                          .count = 4,
                                          .default_used = false},
      .vacuum =
          store::VacuumFacts{.freeze_max_age = 200'000'000, .database_age = 1'000, .tables = {}},
      .sizes = store::SizeFacts{},
      .wake = store::WakeFacts{.notified = true},
      .adoptions = store::AdoptionsFacts{},
      .holders = std::vector<HolderFacts>{},
      .slots = std::vector<store::SlotFacts>{},
      .connections = store::ConnectionFacts{.allowed = 97, .used = 10},
      .wal_bytes = std::int64_t{1} << 24};
}

Findings judged(store::PostgresFacts facts) {
  return judge(store::Diagnosis{.reached = {}, .postgres = std::move(facts), .sqlite = {}},
               kPostgresName);
}

Error denied() {
  return fail(Errc::permission_denied, "ask: permission denied", "GRANT it;").value();
}

TEST(DoctorPostgres, a_sound_server_has_nothing_but_ok) {
  const Findings findings = judged(sound_server());
  for (const Finding& one : findings.all())
    EXPECT_EQ(one.severity, Severity::ok) << one.check << ": " << one.what;
  for (const char* const check : {"store", "durability", "clock", "connections", "schema",
                                  "snapshot", "disk", "wal", "lineage", "sequence", "roles",
                                  "partitions", "autovacuum", "wraparound", "wake_up", "adoption"})
    expect_in_order(findings, check);
}

TEST(DoctorPostgres, a_store_that_cannot_be_reached_is_one_error) {
  const Findings findings = judge(
      store::Diagnosis{.reached = fail(Errc::permission_denied, "password failed", "check it")},
      kPostgresName);
  ASSERT_EQ(findings.all().size(), 1U);
  EXPECT_EQ(findings.all().front().severity, Severity::error);
  EXPECT_EQ(findings.all().front().what, "password failed");
  EXPECT_EQ(findings.all().front().command, "check it");
}

TEST(DoctorPostgres, what_it_may_not_ask_is_a_note_and_the_rest_goes_on) {
  auto facts = sound_server();
  facts.wal_bytes = fail(denied());
  facts.roles = fail(denied());
  const Findings findings = judged(std::move(facts));
  EXPECT_EQ(complaint(findings, "roles").severity, Severity::note);
  EXPECT_EQ(complaint(findings, "wal").severity, Severity::note);
  EXPECT_THAT(complaint(findings, "wal").command, HasSubstr("GRANT pg_monitor TO \"relay1\";"));
  expect_in_order(findings, "sequence");
}

TEST(DoctorPostgres, what_was_not_answered_in_time_is_a_warning) {
  auto facts = sound_server();
  facts.vacuum = fail(Errc::deadline_exceeded, "look at autovacuum: canceled", "");
  EXPECT_EQ(complaint(judged(std::move(facts)), "autovacuum").severity, Severity::warning);
}

TEST(DoctorPostgres, another_schema_version_stops_questions_about_the_schema) {
  for (const int version : {0, 7, 9}) {
    auto facts = sound_server();
    facts.version = store::SchemaState{.version = version, .wanted = 8, .edited = {}};
    const Findings findings = judged(std::move(facts));
    EXPECT_EQ(complaint(findings, "schema").severity, Severity::error) << version;
    EXPECT_EQ(complaint(findings, "schema").command == "outbox migrate", version < 8);
    for (const Finding& one : findings.all()) EXPECT_NE(one.check, "sequence");
    expect_in_order(findings, "connections");
  }
}

TEST(DoctorPostgres, a_standby_and_a_login_without_rights_leave_deliveries) {
  const auto readable = [](store::PostgresFacts facts) {
    return can_be_read(store::Diagnosis{.reached = {}, .postgres = std::move(facts), .sqlite = {}});
  };
  auto facts = sound_server();
  EXPECT_TRUE(readable(facts));
  facts.server->standby = true;
  EXPECT_FALSE(readable(facts));
  EXPECT_THAT(complaint(judged(facts), "store").command,
              HasSubstr("target_session_attrs=read-write"));
  facts = sound_server();
  facts.server->may_read = false;
  EXPECT_FALSE(readable(facts));
}

TEST(DoctorPostgres, a_sequence_that_was_set_back) {
  auto facts = sound_server();
  facts.sequences = std::vector<store::SequenceFacts>{
      {.name = "outbox.event_seq", .quoted_name = "'outbox.event_seq'", .last = 3, .used = 7}};
  const Finding found = complaint(judged(std::move(facts)), "sequence");
  EXPECT_EQ(found.severity, Severity::error);
  EXPECT_EQ(found.what, "stands at 3, and 7 is in use");
  EXPECT_EQ(found.command, "SELECT setval('outbox.event_seq', 7);");
}

TEST(DoctorPostgres, another_databases_lineage) {
  auto facts = sound_server();
  facts.log->own_lineage = false;
  EXPECT_THAT(complaint(judged(std::move(facts)), "lineage").command,
              HasSubstr("outbox doctor --repair-lineage"));
}

/// The findings once the definitions have been changed.
template <class Change>
Findings changed(const Change& change) {
  auto facts = sound_server();
  change(facts.schema_facts->found);
  return judged(std::move(facts));
}

void drop(store::Definitions& found, const std::string& part) {
  std::erase_if(found, [&](const auto& one) { return one.part == part; });
}

TEST(DoctorPostgres, a_part_that_is_missing_is_made_again) {
  const Finding found =
      complaint(changed([](auto& list) { drop(list, "index event_by_seq"); }), "schema");
  EXPECT_EQ(found.severity, Severity::error);
  EXPECT_EQ(found.subject, "table outbox.event");
  EXPECT_EQ(found.what, "lacks index event_by_seq");
  EXPECT_THAT(found.reason, HasSubstr("relays do not start"));
  EXPECT_EQ(
      found.command,
      "SET ROLE outbox_owner; DROP INDEX IF EXISTS outbox.event_by_seq; CREATE INDEX event_by_seq; RESET ROLE;");
}

TEST(DoctorPostgres, an_object_that_is_gone_is_made_again_with_its_rights_by_its_owner) {
  const Findings findings = changed([](auto& list) {
    std::erase_if(list, [](const auto& one) { return one.object == "function outbox.prune"; });
  });
  const Finding found = complaint(findings, "schema");
  EXPECT_EQ(found.what, "is missing");
  EXPECT_EQ(found.command,
            "SET ROLE outbox_owner; CREATE OR REPLACE FUNCTION outbox.prune(); "
            "REVOKE EXECUTE ON FUNCTION outbox.prune() FROM PUBLIC; RESET ROLE;");
  EXPECT_FALSE(findings.complains("roles"));
}

TEST(DoctorPostgres, what_differs_is_shown) {
  const Finding found = complaint(
      changed([](auto& list) { list[5].makes = "ALTER SEQUENCE outbox.event_seq CACHE 32"; }),
      "schema");
  EXPECT_EQ(found.what,
            "differs in its definition, which is ALTER SEQUENCE outbox.event_seq CACHE 32");
  EXPECT_EQ(found.command, "ALTER SEQUENCE outbox.event_seq INCREMENT 1 CACHE 1 NO CYCLE;");
}

TEST(DoctorPostgres, what_was_added_is_as_bad_as_what_it_can_do) {
  for (const auto& [part, severity] :
       {std::pair("trigger audit", Severity::error),
        std::pair("row level security", Severity::error), std::pair("column x", Severity::warning),
        std::pair("unique index y", Severity::error), std::pair("index z", Severity::ok)}) {
    const Findings findings = changed([&, part = part](auto& list) {
      list.push_back({.object = "table outbox.event", .part = part, .undoes = "UNDO"});
    });
    if (severity == Severity::ok) {
      EXPECT_FALSE(findings.complains("schema")) << "a plain index is a person's choice";
      continue;
    }
    const Finding found = complaint(findings, "schema");
    EXPECT_EQ(found.severity, severity) << part;
    EXPECT_EQ(found.command, "UNDO;");
  }
}

TEST(DoctorPostgres, roles_with_too_few_and_too_many_rights) {
  Finding found =
      complaint(changed([](auto& list) { drop(list, "SELECT ON outbox.event"); }), "roles");
  EXPECT_EQ(found.severity, Severity::error);
  EXPECT_EQ(found.what, "lacks SELECT ON outbox.event");
  EXPECT_EQ(found.command, "GRANT SELECT ON outbox.event TO outbox_relay;");

  found = complaint(changed([](auto& list) {
                      list.push_back({.object = "table outbox.event",
                                      .part = "DELETE ON outbox.event",
                                      .grantee = "outbox_app",
                                      .makes = "GRANT DELETE ON outbox.event TO outbox_app",
                                      .undoes = "REVOKE DELETE ON outbox.event FROM outbox_app"});
                    }),
                    "roles");
  EXPECT_EQ(found.severity, Severity::warning);
  EXPECT_EQ(found.what, "has DELETE ON outbox.event");
  EXPECT_EQ(found.command, "REVOKE DELETE ON outbox.event FROM outbox_app;");

  // PUBLIC has this right by default, and the schema takes it away.
  found = complaint(changed([](auto& list) { drop(list, "EXECUTE ON FUNCTION outbox.prune()"); }),
                    "roles");
  EXPECT_EQ(found.severity, Severity::warning);
  EXPECT_EQ(found.what, "has EXECUTE ON FUNCTION outbox.prune()");
  EXPECT_EQ(found.command, "REVOKE EXECUTE ON FUNCTION outbox.prune() FROM PUBLIC;");
}

TEST(DoctorPostgres, lists_of_different_makers_are_not_compared) {
  for (const char* const by : {"", "PostgreSQL 14"}) {
    auto facts = sound_server();
    facts.schema_facts->wanted = {{.part = "made by", .makes = by}};
    const Finding found = complaint(judged(std::move(facts)), "schema");
    EXPECT_EQ(found.severity, Severity::warning);
    EXPECT_THAT(found.what, HasSubstr("not compared"));
    EXPECT_EQ(found.command, "outbox migrate");
  }
}

TEST(DoctorPostgres, rights_beside_those_of_a_role) {
  auto facts = sound_server();
  facts.roles = std::vector<RoleFacts>{
      {.name = "relay1",
       .what = "has DELETE ON outbox.event, as a member of pg_write_all_data",
       .statement = "REVOKE pg_write_all_data FROM relay1"}};
  const Finding found = complaint(judged(facts), "roles");
  EXPECT_EQ(found.severity, Severity::warning);
  EXPECT_EQ(found.command, "REVOKE pg_write_all_data FROM relay1;");
  facts.roles->front().exists = false;
  EXPECT_EQ(complaint(judged(facts), "roles").severity, Severity::note);
}

TEST(DoctorPostgres, partitions_that_end_soon_or_have_ended) {
  auto facts = sound_server();
  facts.partitions->end = facts.partitions->next_xid + 1'000'000;
  Finding found = complaint(judged(facts), "partitions");
  EXPECT_EQ(found.severity, Severity::warning);
  EXPECT_THAT(found.what, HasSubstr("0.4 h"));
  EXPECT_EQ(found.command, "SELECT outbox.make_partitions();");
  facts.partitions->end = facts.partitions->next_xid;
  EXPECT_EQ(complaint(judged(facts), "partitions").severity, Severity::error);
  facts.partitions->end.reset();
  EXPECT_EQ(complaint(judged(facts), "partitions").severity, Severity::error);
}

TEST(DoctorPostgres, autovacuum_off_or_too_slow) {
  auto facts = sound_server();
  facts.vacuum->tables = {{.name = "lane", .autovacuum = false},
                          {.name = "relay", .live = 3, .dead = 200'000}};
  Findings findings = judged(facts);
  EXPECT_EQ(count(findings.all(), Severity::warning), 2U);
  EXPECT_TRUE(findings.complains("autovacuum"));
  facts = sound_server();
  facts.vacuum->autovacuum = false;
  EXPECT_EQ(complaint(judged(facts), "autovacuum").command,
            "ALTER SYSTEM SET autovacuum = on; SELECT pg_reload_conf();");
}

TEST(DoctorPostgres, transaction_ids_that_run_out) {
  auto facts = sound_server();
  facts.vacuum->database_age = 450'000'000;
  EXPECT_EQ(complaint(judged(facts), "wraparound").severity, Severity::warning);
  facts.vacuum->database_age = 2'100'000'000;
  EXPECT_EQ(complaint(judged(facts), "wraparound").severity, Severity::error);
  // If autovacuum is set to wait for longer, a greater age is in order.
  facts.vacuum->freeze_max_age = 1'500'000'000;
  facts.vacuum->database_age = 1'600'000'000;
  expect_in_order(judged(facts), "wraparound");
}

TEST(DoctorPostgres, who_holds_an_old_snapshot) {
  auto facts = sound_server();
  facts.holders = std::vector<HolderFacts>{{.kind = HolderFacts::Kind::session,
                                            .pid = 4711,
                                            .name = "report",
                                            .login = "ana",
                                            .state = "idle in transaction",
                                            .age_us = 7'200'000'000,
                                            .xids = 12}};
  const Finding found = complaint(judged(facts), "snapshot");
  EXPECT_EQ(found.severity, Severity::warning);
  for (const char* const part :
       {"pid 4711", "application report", "login ana", "idle in transaction", "2 h ago"})
    EXPECT_THAT(found.what, HasSubstr(part));
  EXPECT_EQ(found.command, "SELECT pg_terminate_backend(4711);");
  facts.holders->front().age_us = 1'000'000;
  expect_in_order(judged(facts), "snapshot");
}

TEST(DoctorPostgres, prepared_transactions_and_slots_that_hold_rows) {
  auto facts = sound_server();
  facts.holders = std::vector<HolderFacts>{{.kind = HolderFacts::Kind::prepared,
                                            .name = "it's",
                                            .quoted_name = "'it''s'",
                                            .state = "shop",
                                            .age_us = 3'600'000'000,
                                            .xids = 12}};
  EXPECT_EQ(
      complaint(judged(facts), "snapshot").command,
      "in database shop, as was decided: COMMIT PREPARED 'it''s'; or ROLLBACK PREPARED 'it''s';");
  facts.holders = std::vector<HolderFacts>{{.kind = HolderFacts::Kind::slot,
                                            .name = "old",
                                            .quoted_name = "'old'",
                                            .xids = 1,
                                            .active = false}};
  EXPECT_EQ(complaint(judged(facts), "snapshot").command,
            "if its consumer is gone for good: SELECT pg_drop_replication_slot('old');");
  facts.holders = std::vector<HolderFacts>{
      {.kind = HolderFacts::Kind::standby, .pid = 7, .name = "replica", .age_us = 3'600'000'000}};
  EXPECT_THAT(complaint(judged(facts), "snapshot").what, HasSubstr("hot_standby_feedback"));
}

TEST(DoctorPostgres, that_it_cannot_know_since_when) {
  auto facts = sound_server();
  facts.server->sees_sessions = false;
  EXPECT_EQ(complaint(judged(facts), "snapshot").severity, Severity::note);
}

TEST(DoctorPostgres, a_slot_that_keeps_the_wal) {
  auto facts = sound_server();
  facts.slots = std::vector<store::SlotFacts>{{.name = "s",
                                               .quoted_name = "'s'",
                                               .active = false,
                                               .bytes = std::int64_t{20} << 30,
                                               .wal_status = "extended"}};
  EXPECT_THAT(complaint(judged(facts), "wal").what, HasSubstr("20.0 GiB"));
  EXPECT_EQ(complaint(judged(facts), "wal").severity, Severity::warning);
  facts.slots->front().bytes = std::int64_t{2} << 30;
  EXPECT_EQ(complaint(judged(facts), "wal").severity, Severity::warning);
  facts.slots->front().active = true;
  EXPECT_FALSE(judged(facts).complains("wal")) << "its consumer is a little behind";
}

TEST(DoctorPostgres, a_slot_that_nobody_uses) {
  auto facts = sound_server();
  facts.slots = std::vector<store::SlotFacts>{{.name = "s",
                                               .quoted_name = "'s'",
                                               .active = false,
                                               .bytes = 1 << 24,
                                               .wal_status = "reserved"}};
  EXPECT_EQ(complaint(judged(facts), "wal").severity, Severity::note);
  EXPECT_EQ(complaint(judged(facts), "wal").command,
            "if its consumer is gone for good: SELECT pg_drop_replication_slot('s');");
  facts.slots->front().bytes = 0;
  EXPECT_FALSE(judged(facts).complains("wal")) << "it keeps nothing yet";
  facts.slots->front().wal_status = "lost";
  EXPECT_EQ(complaint(judged(facts), "wal").severity, Severity::warning);
  EXPECT_THAT(complaint(judged(facts), "wal").reason, HasSubstr("events are not affected"));
  EXPECT_EQ(complaint(judged(facts), "wal").command, "SELECT pg_drop_replication_slot('s');");
}

TEST(DoctorPostgres, what_forbids_the_wake_up) {
  auto facts = sound_server();
  facts.wake->notified = false;
  EXPECT_EQ(complaint(judged(facts), "wake_up").severity, Severity::warning);
  facts.server->pooler = true;
  const Finding found = complaint(judged(facts), "wake_up");
  EXPECT_EQ(found.severity, Severity::note);
  EXPECT_THAT(found.what, HasSubstr("pooler"));
}

TEST(DoctorPostgres, standbys_that_events_wait_for) {
  RelayOptions relay{.store_url = "postgresql://db/shop"};
  relay.publish_after = PublishAfter::replicated;
  auto facts = sound_server();
  const auto found = [&] {
    Findings findings;
    judge_standbys(relay, facts, findings);
    return findings;
  };
  facts.standbys = std::vector<store::StandbyFacts>{};
  EXPECT_THAT(complaint(found(), "standbys").what, HasSubstr("and 0 of those are connected"));
  EXPECT_EQ(complaint(found(), "standbys").severity, Severity::error);
  relay.replicated_timeout = std::chrono::seconds(10);
  EXPECT_EQ(complaint(found(), "standbys").severity, Severity::warning);
  facts.standbys = std::vector<store::StandbyFacts>{{.name = "a", .state = "streaming"}};
  expect_in_order(found(), "standbys");
  relay.replicated_by = {"b"};
  EXPECT_THAT(complaint(found(), "standbys").what, HasSubstr("a (streaming, 0 bytes behind)"));
  facts.standbys = std::vector<store::StandbyFacts>{{}};
  EXPECT_THAT(complaint(found(), "standbys").command, HasSubstr("GRANT pg_monitor"));
  relay.publish_after = PublishAfter::flushed;
  EXPECT_FALSE(found().complains("standbys"));
}

store::WalFacts followed_log() {
  return {.wal_level = "logical",
          .login = "relay1",
          .may_replicate = true,
          .publication_name = "outbox_wal",
          .publication = store::WalFacts::Publication::good,
          .slots = 10,
          .free_slots = 5,
          .senders = 10,
          .free_senders = 5};
}

Findings judged_feed(const store::WalFacts& wal, Feed feed) {
  auto facts = sound_server();
  facts.wal = wal;
  Findings findings;
  judge_feed({.reached = {}, .postgres = std::move(facts), .sqlite = {}}, feed, kPostgresName,
             findings);
  return findings;
}

TEST(DoctorPostgres, what_following_the_log_needs_and_costs) {
  EXPECT_TRUE(judged_feed({}, Feed::poll).all().empty()) << "nobody wants it";
  const Findings sound = judged_feed(followed_log(), Feed::wal);
  ASSERT_EQ(sound.all().size(), 2U);
  EXPECT_EQ(sound.all().front().severity, Severity::ok);
  EXPECT_THAT(sound.all().back().what, HasSubstr("decodes its whole write-ahead log"));
  const auto command = [](auto&& spoil, Feed feed, Severity severity) {
    store::WalFacts facts = followed_log();
    spoil(facts);
    const Finding found = complaint(judged_feed(facts, feed), "feed");
    EXPECT_EQ(found.severity, severity) << found.what;
    return found.command;
  };
  for (const auto& [feed, severity] :
       {std::pair(Feed::wal, Severity::warning), std::pair(Feed::automatic, Severity::note)}) {
    EXPECT_EQ(command([](auto& facts) { facts.wal_level = "replica"; }, feed, severity),
              "ALTER SYSTEM SET wal_level = logical;");
    EXPECT_EQ(command([](auto& facts) { facts.may_replicate = false; }, feed, severity),
              "ALTER ROLE \"relay1\" REPLICATION;");
    EXPECT_THAT(command([](auto& facts) { facts.publication = {}; }, feed, severity),
                HasSubstr("outbox migrate --with-wal"));
    EXPECT_EQ(command([](auto& facts) { facts.publication = store::WalFacts::Publication::wrong; },
                      feed, severity),
              "DROP PUBLICATION \"outbox_wal\";");
    EXPECT_NE(command([](auto& facts) { facts.pooler = true; }, feed, severity), "");
    EXPECT_NE(command([](auto& facts) { facts.any_is_standby = true; }, feed, severity), "");
    EXPECT_EQ(command([](auto& facts) { facts.free_slots = 0; }, feed, Severity::note),
              "ALTER SYSTEM SET max_replication_slots = 20;");
  }
}

TEST(DoctorPostgres, connections_that_run_out) {
  auto facts = sound_server();
  facts.connections->used = 90;
  EXPECT_THAT(complaint(judged(facts), "connections").what, HasSubstr("90 of 97"));
  facts.connections =
      store::ConnectionFacts{.allowed = 97, .used = 10, .role_limit = 5, .role_used = 1};
  EXPECT_THAT(complaint(judged(facts), "connections").what, HasSubstr("the limit of this login"));
}

TEST(DoctorPostgres, clocks_that_differ) {
  auto facts = sound_server();
  facts.clock =
      store::ClockFacts{.before_us = 10'000'000, .store_us = 3'000'000, .after_us = 10'001'000};
  const Finding found = complaint(judged(facts), "clock");
  EXPECT_EQ(found.severity, Severity::warning);
  EXPECT_THAT(found.what, HasSubstr("7 s behind"));
}

TEST(DoctorPostgres, commits_that_are_not_on_disk) {
  auto facts = sound_server();
  facts.server->synchronous_commit = "off";
  EXPECT_EQ(complaint(judged(facts), "durability").severity, Severity::note);
  facts.server->fsync = false;
  EXPECT_EQ(complaint(judged(facts), "durability").severity, Severity::error);
  EXPECT_EQ(complaint(judged(facts), "durability").command,
            "ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf();");
}

}  // namespace
}  // namespace outbox::health
