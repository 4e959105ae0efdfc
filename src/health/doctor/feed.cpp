// Findings about following PostgreSQL's write-ahead log (docs/design/feed.md).
#include <fmt/format.h>

#include "health/doctor/store.hpp"

namespace outbox::health {
namespace {

using store::WalFacts;

constexpr const char* kFeedCheck = "feed";
constexpr const char* kPolls = "relays poll, as with relay.feed = \"poll\"";

/// Whoever makes a stream of its own takes one of these; relays that run have theirs already.
void judge_free(const char* setting, std::int64_t all, std::int64_t left, Findings& findings) {
  if (left > 0) return;
  findings.add(
      Severity::note, kFeedCheck, "", fmt::format("all {} of {} are in use", all, setting),
      fmt::format("{}, unless they are among those that use one; it takes a restart", kPolls),
      fmt::format("ALTER SYSTEM SET {} = {};", setting, all + 10));
}

void judge_wal(const WalFacts& facts, const store::ServerFacts& server, Severity severity,
               const StoreName& name, Findings& findings) {
  const auto missing = [&](std::string what, std::string reason, std::string command) {
    findings.add(severity, kFeedCheck, "", std::move(what), std::move(reason), std::move(command));
  };
  if (facts.pooler)
    missing("a pooler stands between this program and the server, which has no log to follow",
            kPolls, "give relays a store.url with the address of the server itself");
  if (facts.wal_level != "logical")
    missing("wal_level is " + facts.wal_level + ", not logical",
            fmt::format("{}; after this command the server has to be restarted", kPolls),
            "ALTER SYSTEM SET wal_level = logical;");
  if (!facts.may_replicate)
    missing(
        fmt::format("this login, {}, may not replicate", facts.login),
        fmt::format(
            "{}. A membership does not give this right. pg_hba.conf needs a line such as \"hostssl {} {} "
            "ADDRESS scram-sha-256\": its keyword replication is for standbys only. With this right a login can "
            "read every table of every database: give it to none but relays",
            kPolls, server.database, facts.login),
        fmt::format("ALTER ROLE {} REPLICATION;", identifier(facts.login)));
  if (facts.publication == WalFacts::Publication::missing)
    missing("there is no publication " + facts.publication_name, kPolls,
            name.command("migrate --with-wal"));
  if (facts.publication == WalFacts::Publication::wrong)
    missing(
        "the publication " + facts.publication_name + " is not that of `outbox migrate --with-wal`",
        fmt::format("{}; then: {}", kPolls, name.command("migrate --with-wal")),
        fmt::format("DROP PUBLICATION {};", identifier(facts.publication_name)));
  if (facts.any_is_standby)
    missing(
        "synchronous_standby_names has '*'",
        fmt::format(
            "{}: a relay that follows the log would count as a synchronous standby, and keeps nothing",
            kPolls),
        "SELECT application_name FROM pg_stat_replication;");
  judge_free("max_replication_slots", facts.slots, facts.free_slots, findings);
  judge_free("max_wal_senders", facts.senders, facts.free_senders, findings);
}

}  // namespace

void judge_feed(const store::Diagnosis& diagnosis, Feed feed, const StoreName& name,
                Findings& findings) {
  if (feed == Feed::poll || !diagnosis.postgres || !diagnosis.postgres->server) return;
  const store::PostgresFacts& facts = *diagnosis.postgres;
  if (facts.server->standby) return;
  const Severity severity = feed == Feed::wal ? Severity::warning : Severity::note;
  findings.check(kFeedCheck, facts.wal, [&](const WalFacts& wal) {
    judge_wal(wal, *facts.server, severity, name, findings);
  });
  if (findings.complains(kFeedCheck)) return;
  findings.ok(kFeedCheck, "the write-ahead log can be followed");
  findings.add(
      Severity::note, kFeedCheck, "cost",
      "for each process with relays the server decodes its whole write-ahead log",
      "also what other tables and databases write; a transaction beyond logical_decoding_work_mem is written to the disk "
      "once more, and delays wake-ups up to relay.idle_poll",
      "SELECT slot_name, spill_bytes, total_bytes FROM pg_stat_replication_slots;");
}

}  // namespace outbox::health
