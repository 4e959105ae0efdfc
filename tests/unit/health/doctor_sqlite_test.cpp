// Tests the findings about a SQLite file, which are made from facts.
#include "base/error.hpp"
#include "findings.hpp"
#include "health/doctor/store.hpp"

namespace outbox::health {
namespace {

using store::FileFacts;
using ::testing::HasSubstr;

const StoreName kSqliteName{.shown = "sqlite:shop.db", .options = " --store sqlite:shop.db"};

store::Definitions sqlite_definitions() {
  return {{.part = "made by", .makes = "outbox 1"},
          {.object = "table outbox_event", .makes = "CREATE TABLE outbox_event (seq)"},
          {.object = "table outbox_event",
           .part = "trigger never_changed",
           .makes = "DROP TRIGGER IF EXISTS \"never_changed\"; CREATE TRIGGER never_changed",
           .undoes = "DROP TRIGGER \"never_changed\""}};
}

store::SqliteFacts sound_file() {
  return {.path = "/srv/shop.db",
          .library = "3.51.3",
          .wal_reset_bug = false,
          .files =
              std::vector<FileFacts>{
                  {.path = "/srv/shop.db", .bytes = 4096, .owner = 1, .mode = 0640},
                  {.path = "/srv/shop.db-wal", .bytes = 4096, .owner = 1, .mode = 0640}},
          .disk = store::DiskFacts{.free_bytes = std::int64_t{10} << 30,
                                   .all_bytes = std::int64_t{20} << 30},
          .version = store::SchemaState{.version = 6, .wanted = 6, .edited = {}},
          .schema_facts =
              store::SchemaFacts{.wanted = sqlite_definitions(), .found = sqlite_definitions()},
          .journal_mode = std::string("wal"),
          .beyond_log = std::int64_t{0},
          .busy = store::SqliteFacts::Busy{}};
}

Findings judged(store::SqliteFacts facts) {
  return judge(store::Diagnosis{.reached = {}, .postgres = {}, .sqlite = std::move(facts)},
               kSqliteName);
}

TEST(DoctorSqlite, a_sound_file_has_nothing_but_ok) {
  const Findings findings = judged(sound_file());
  for (const Finding& one : findings.all())
    EXPECT_EQ(one.severity, Severity::ok) << one.check << ": " << one.what;
  for (const char* const check :
       {"store", "schema", "journal", "sequence", "files", "library", "wal", "busy", "disk"})
    expect_in_order(findings, check);
}

TEST(DoctorSqlite, another_journal_mode) {
  auto facts = sound_file();
  facts.journal_mode = std::string("delete");
  const Finding found = complaint(judged(facts), "journal");
  EXPECT_EQ(found.severity, Severity::error);
  EXPECT_EQ(found.command, "outbox migrate --store sqlite:/srv/shop.db");
}

TEST(DoctorSqlite, a_schema_that_somebody_changed) {
  auto facts = sound_file();
  facts.schema_facts->found.pop_back();
  Finding found = complaint(judged(facts), "schema");
  EXPECT_EQ(found.what, "lacks trigger never_changed");
  EXPECT_EQ(
      found.command,
      "sqlite3 /srv/shop.db 'DROP TRIGGER IF EXISTS \"never_changed\"; CREATE TRIGGER never_changed'");
  facts = sound_file();
  facts.schema_facts->found[1].makes = "CREATE TABLE outbox_event (seq, mine)";
  found = complaint(judged(facts), "schema");
  EXPECT_EQ(found.what,
            "differs in its definition, which is CREATE TABLE outbox_event (seq, mine)");
  EXPECT_THAT(found.command, HasSubstr("should be: CREATE TABLE outbox_event (seq)"));
}

TEST(DoctorSqlite, a_cursor_beyond_the_log) {
  auto facts = sound_file();
  facts.beyond_log = std::int64_t{5};
  EXPECT_EQ(complaint(judged(facts), "sequence").severity, Severity::error);
  facts.version = store::SchemaState{.version = 5, .wanted = 6, .edited = {}};
  EXPECT_FALSE(judged(facts).complains("sequence")) << "another version's log is not looked at";
}

TEST(DoctorSqlite, files_that_keep_others_out) {
  auto facts = sound_file();
  facts.files->back().owner = 0;
  EXPECT_EQ(complaint(judged(facts), "files").severity, Severity::warning);
  facts.files->back().writable = false;
  const Finding found = complaint(judged(facts), "files");
  EXPECT_EQ(found.severity, Severity::error);
  EXPECT_EQ(found.command, "chown --reference=/srv/shop.db /srv/shop.db-wal");
}

TEST(DoctorSqlite, files_that_let_others_in) {
  auto facts = sound_file();
  facts.files->front().mode = 0666;
  EXPECT_EQ(complaint(judged(facts), "files").severity, Severity::warning);
  facts.files->front().mode = 0644;
  EXPECT_EQ(complaint(judged(facts), "files").severity, Severity::note);
}

TEST(DoctorSqlite, a_foreign_journal_and_a_second_name) {
  auto facts = sound_file();
  facts.files->push_back({.path = "/srv/shop.db-journal", .bytes = 512, .owner = 1, .mode = 0640});
  EXPECT_THAT(complaint(judged(facts), "files").what, HasSubstr("rollback journal"));
  facts = sound_file();
  facts.files->front().links = 2;
  EXPECT_EQ(complaint(judged(facts), "files").severity, Severity::error);
}

TEST(DoctorSqlite, a_large_wal_and_a_full_disk) {
  auto facts = sound_file();
  facts.files->back().bytes = std::int64_t{1} << 30;
  EXPECT_THAT(complaint(judged(facts), "wal").what, HasSubstr("1.0 GiB"));
  facts.disk = store::DiskFacts{.free_bytes = 500 << 20, .all_bytes = 1 << 30};
  EXPECT_EQ(complaint(judged(facts), "disk").severity, Severity::warning);
  facts.disk->free_bytes = 1 << 20;
  EXPECT_EQ(complaint(judged(facts), "disk").severity, Severity::error);
  facts.disk->free_bytes = 0;
  EXPECT_EQ(complaint(judged(facts), "disk").what,
            "the disk is full: 0 bytes are free where the database has 4.0 KiB");
}

TEST(DoctorSqlite, a_file_that_cannot_be_opened_because_the_disk_is_full) {
  auto facts = sound_file();
  facts.disk->free_bytes = 0;
  const Findings findings =
      judge(store::Diagnosis{.reached = fail(Errc::unavailable, "disk I/O error", "is it full?"),
                             .postgres = {},
                             .sqlite = std::move(facts)},
            kSqliteName);
  EXPECT_EQ(complaint(findings, "store").severity, Severity::error);
  EXPECT_THAT(complaint(findings, "disk").what, HasSubstr("the disk is full"));
  EXPECT_EQ(findings.all().size(), 2U) << "the rest is not known";
}

TEST(DoctorSqlite, who_has_the_write_lock) {
  auto facts = sound_file();
  facts.busy = store::SqliteFacts::Busy{.locked = true, .pids = {12, 13}};
  const Finding found = complaint(judged(facts), "busy");
  EXPECT_THAT(found.what, HasSubstr("pid 12, 13"));
  EXPECT_EQ(found.command, "ps -fp 12,13");
}

TEST(DoctorSqlite, a_library_with_the_wal_reset_bug) {
  auto facts = sound_file();
  facts.wal_reset_bug = true;
  EXPECT_EQ(complaint(judged(facts), "library").severity, Severity::note);
  facts.files->back().bytes = std::int64_t{1} << 30;
  const std::string checkpoint = "sqlite3 /srv/shop.db 'PRAGMA wal_checkpoint(TRUNCATE)'";
  EXPECT_EQ(complaint(judged(facts), "wal").command,
            "stop all programs that use the database; then " + checkpoint);
  facts.wal_reset_bug = false;
  EXPECT_EQ(complaint(judged(facts), "wal").command, checkpoint);
}

}  // namespace
}  // namespace outbox::health
