#include "health/doctor/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace outbox::health {
namespace {

void unreachable(const Error& error, const StoreName& name, Findings& findings) {
  findings.add(Severity::error, "store", name.shown, error.message,
               "nothing is delivered while a relay cannot use the store", error.hint);
}

/// An object belongs to the role that makes it, so statements that make one run as the owner of the
/// schema.
std::string in_psql(const store::PostgresFacts& facts, const std::string& statements, bool makes) {
  if (!makes || statements.find("CREATE ") == std::string::npos) return statements + ";";
  const auto& found = facts.schema_facts->found;
  const auto owner = std::find_if(found.begin(), found.end(), [](const auto& one) {
    return one.object.empty() && one.part == "owner";
  });
  if (owner == found.end()) return statements + ";";
  return fmt::format("SET ROLE {}; {}; RESET ROLE;", owner->makes, statements);
}

Findings judge(const store::PostgresFacts& facts, const StoreName& name) {
  Findings findings;
  const auto judge_answer = [&](const auto& answer) { judge(facts, answer, findings); };
  const auto judge_named = [&](const auto& answer) { judge(answer, name, findings); };
  findings.check("store", facts.server, judge_named);
  judge_clock(facts.clock, findings);
  findings.check("connections", facts.connections, judge_answer);
  judge_version(facts.version, name, findings);
  findings.check("snapshot", facts.holders, judge_answer);
  judge_disk(facts, findings);
  if (!facts.version || facts.version->version != facts.version->wanted || !facts.server)
    return findings;
  findings.check("lineage", facts.log, judge_answer);
  judge_schema(
      facts.schema_facts, name,
      [&](const std::string& statements, bool makes) { return in_psql(facts, statements, makes); },
      findings);
  if (facts.server->may_read) findings.check("sequence", facts.sequences, judge_answer);
  findings.check("roles", facts.roles, judge_answer);
  findings.check("partitions", facts.partitions, judge_answer);
  findings.check("autovacuum", facts.vacuum, judge_answer);
  findings.check("wake_up", facts.wake, judge_answer);
  findings.check("adoption", facts.adoptions, judge_named);
  return findings;
}

}  // namespace

bool can_be_read(const store::Diagnosis& diagnosis) {
  const auto current = [](const Result<store::SchemaState>& version) {
    return version && version->version == version->wanted;
  };
  if (!diagnosis.reached) return false;
  if (diagnosis.sqlite) return current(diagnosis.sqlite->version);
  const auto& facts = *diagnosis.postgres;
  return current(facts.version) && facts.server && facts.server->may_read && !facts.server->standby;
}

Findings judge(const store::Diagnosis& diagnosis, const StoreName& name) {
  Findings findings;
  if (!diagnosis.reached) {
    unreachable(diagnosis.reached.error(), name, findings);
    if (diagnosis.sqlite) judge_disk(*diagnosis.sqlite, findings);
  } else if (diagnosis.postgres) {
    findings = judge(*diagnosis.postgres, name);
  } else if (diagnosis.sqlite) {
    judge(*diagnosis.sqlite, name, findings);
  }
  return findings;
}

void judge_version(const Result<store::SchemaState>& version, const StoreName& name,
                   Findings& findings) {
  if (!version) return findings.not_checked("schema", version.error());
  const auto& [has, wanted, edited] = *version;
  if (has == 0)
    return findings.add(Severity::error, "schema", "", "there is no outbox in this store",
                        "writers fail, and no relay starts", name.command("migrate"));
  if (has < wanted) {
    return findings.add(
        Severity::error, "schema", "",
        fmt::format("schema version {} is older than this program, which needs {}", has, wanted),
        "relays of this version do not start", name.command("migrate"));
  }
  if (has > wanted) {
    return findings.add(
        Severity::error, "schema", "",
        fmt::format("schema version {} is newer than this program, which needs {}", has, wanted),
        "relays of this version do not start", "install the outbox that made it");
  }
  if (!edited.empty()) {
    return findings.add(Severity::error, "schema", "",
                        fmt::format("migration {} differs from the one that was applied", edited),
                        "another build of this version made the tables: this one may not fit them",
                        "use the build that made them");
  }
  findings.ok("schema", fmt::format("version {}", has));
}

void judge_clock(const Result<store::ClockFacts>& clock, Findings& findings) {
  if (!clock) return findings.not_checked("clock", clock.error());
  // The store read its clock at some time between the two readings here.
  std::int64_t off = 0;
  if (clock->store_us < clock->before_us) off = clock->store_us - clock->before_us;
  if (clock->store_us > clock->after_us) off = clock->store_us - clock->after_us;
  const std::chrono::microseconds distance(std::abs(off));
  if (distance < std::chrono::seconds(1))
    return findings.ok("clock", "that of the database and that of this machine agree");
  findings.add(
      distance < std::chrono::seconds(5) ? Severity::note : Severity::warning, "clock", "",
      fmt::format("the database's clock is {} {} that of this machine", about(distance),
                  off < 0 ? "behind" : "ahead of"),
      "the times of ids and of scheduled tasks are this machine's, those of leases, retries and "
      "retention the database's: lags and times that are shown are wrong by this much",
      "timedatectl set-ntp true");
}

}  // namespace outbox::health
