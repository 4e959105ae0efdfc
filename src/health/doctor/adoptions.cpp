// Findings about adopted tables: whether the INSERTs into them still become events.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/count.hpp"
#include "event/time_text.hpp"
#include "health/doctor/store.hpp"
#include "health/health.hpp"

namespace outbox::health {
namespace {

using store::AdoptionFacts;
using store::AdoptionFault;
using store::AdoptionRow;
using store::ColumnChange;

/// Returns a command such as "outbox adopt public.t --undo --apply".
std::string adopt(const StoreName& name, const std::string& table, const std::string& options) {
  return name.command(fmt::format("adopt {} {}", shell_word(table), options));
}

/// Returns the command that begins an adoption with the same options. If `backlog` is empty, the
/// adoption takes over the pending rows.
std::string begin_again(const StoreName& name, const AdoptionFacts& one, const std::string& table,
                        const char* backlog) {
  std::string options;
  for (const std::string& word : one.options) options += shell_word(word) + " ";
  if (*backlog != '\0') options += fmt::format("--backlog {} ", backlog);
  return adopt(name, table, options + "--apply");
}

/// Returns the commands that end the adoption and begin another one.
std::string adopt_anew(const StoreName& name, const AdoptionFacts& one, const char* backlog) {
  return adopt(name, one.row.table, "--undo --apply") + " && " +
         begin_again(name, one, one.row.table, backlog);
}

/// Writers have to stop first: nothing would tell a row that is inserted between the two commands
/// from the rows that were forwarded.
std::string adopt_anew_at_rest(const StoreName& name, const AdoptionFacts& one) {
  return fmt::format("stop what inserts into {}, then: {}", one.row.table,
                     adopt_anew(name, one, "none"));
}

bool can_say_what_was_forwarded(const AdoptionFacts& one) {
  return one.marks_sent || one.has_order;
}

/// Returns what makes the INSERTs events again. Only a person knows which rows of the table were
/// forwarded, unless the table was made anew: then none was.
std::string mend_trigger(const AdoptionFacts& one, const StoreName& name) {
  // The table that has the name now is adopted beside the one that had it before.
  const bool beside = one.row.fault == AdoptionFault::replaced;
  const auto again = [&](const char* backlog) {
    return beside ? begin_again(name, one, one.row.fault_at, backlog)
                  : adopt_anew(name, one, backlog);
  };
  if (!can_say_what_was_forwarded(one)) {
    return fmt::format("stop what inserts into {}, then: {}",
                       beside ? one.row.fault_at : one.row.table, again("none"));
  }
  const std::string anew = again(one.marks_sent ? "" : "all");
  if (one.row.fault == AdoptionFault::remade) return anew;
  if (!one.marks_sent) return "delete the rows that were forwarded or sent before, then: " + anew;
  return (one.took_pending ? "mark the rows that were forwarded before as sent, then: "
                           : "mark all rows but those inserted since then as sent, then: ") +
         anew;
}

/// The finding about a fault as `outbox status` shows it. The doctor, which knows the table's
/// columns, replaces the command by one that mends the fault.
Finding describe_fault(const AdoptionRow& row, const StoreName& name) {
  Finding found{
      .severity = Severity::error,
      .check = "adoption",
      .subject = row.table,
      .what = store::fault_text(row),
      .reason = "rows inserted since then are in the table only: no event of theirs is delivered",
      .command = name.command("doctor"),
      .problem = true};
  if (row.fault == AdoptionFault::dropped) {
    found.severity = Severity::warning;
    found.reason = "no event comes from it any more; what was forwarded is in the log";
    found.command = adopt(name, row.table, "--undo --apply");
  } else if (row.fault == AdoptionFault::replaced) {
    found.reason = fmt::format(
        "rows inserted into {} are in it only: no event of theirs is delivered", row.fault_at);
  }
  return found;
}

void judge_fault(const AdoptionFacts& one, const StoreName& name, Findings& findings) {
  Finding found = describe_fault(one.row, name);
  if (one.row.fault != AdoptionFault::dropped) {
    if (!can_say_what_was_forwarded(one))
      found.reason += ", until they are deleted and inserted again after the command";
    found.command = mend_trigger(one, name);
  }
  findings.add(std::move(found));
}

void judge_unfinished(const AdoptionRow& row, const StoreName& name, Findings& findings) {
  const std::string staged = (row.more_waiting ? "more than " : "") +
                             outbox::count("new row", row.waiting, "waits", "wait");
  const bool copying = row.state == "copying";
  if (row.running) {
    return findings.add(Severity::note, "adoption", row.table,
                        fmt::format("is being adopted ({}): {}", row.state, staged),
                        "they are delivered once its old rows are in the log", "outbox status");
  }
  findings.problem(
      Severity::error, "adoption", row.table,
      fmt::format("its adoption was begun at {} and not finished ({}): {}",
                  event::time_text(row.begun_us), row.state, staged),
      copying
          ? "nothing of it is delivered, neither the rows that were pending nor new ones; none is lost"
          : "new rows are not delivered; none is lost",
      adopt(name, row.table, "--apply"));
}

void judge_change(const AdoptionFacts& one, const ColumnChange& change, const StoreName& name,
                  Findings& findings) {
  const AdoptionRow& row = one.row;
  const std::string column = identifier(change.column);
  if (change.type_now) {
    return findings.add(
        Severity::error, "adoption", row.table,
        fmt::format("the type of its column {} was changed from {} to {}", change.column,
                    change.type, *change.type_now),
        "the trigger's function was made for the old one: INSERTs fail, or events have other content",
        change.says_sent ? fmt::format("ALTER TABLE {} ALTER COLUMN {} TYPE {} USING {}::{};",
                                       row.table, column, change.type, column, change.type)
                         : adopt(name, row.table, "--apply"));
  }
  std::string command = adopt(name, row.table, "--apply");
  if (change.renamed_to) {
    command = fmt::format("ALTER TABLE {} RENAME COLUMN {} TO {};", row.table,
                          identifier(*change.renamed_to), column);
  } else if (change.says_sent || (change.needed && row.is_unfinished())) {
    command = fmt::format("ALTER TABLE {} ADD COLUMN {} {};", row.table, column, change.type);
  } else if (change.needed) {
    // A new adoption may recognise another column in place of the dropped one.
    command = one.took_pending ? adopt_anew(name, one, "") : adopt_anew_at_rest(name, one);
  }
  findings.add(
      Severity::error, "adoption", row.table,
      fmt::format("its column {} {}", change.column,
                  change.renamed_to ? "is now called " + *change.renamed_to : "was dropped"),
      "the trigger's function reads it: every INSERT fails, with the transaction that it is in",
      std::move(command));
}

void judge_table(const AdoptionFacts& one, const StoreName& name, Findings& findings) {
  if (one.row.fault != AdoptionFault::none) judge_fault(one, name, findings);
  if (one.row.state == "broken") return;
  if (one.row.is_unfinished()) judge_unfinished(one.row, name, findings);
  for (const ColumnChange& change : one.changes) judge_change(one, change, name, findings);
  if (one.replicated) {
    findings.add(Severity::note, "adoption", one.row.table,
                 "it gets rows by logical replication, too",
                 "those are not forwarded: its trigger fires for INSERTs of this server only",
                 "adopt the table on the server where the application writes");
  }
}

void judge_silent(const store::SilentSessions& one, Findings& findings) {
  std::string whose = "of this server";
  std::string command =
      "ALTER SYSTEM SET session_replication_role = origin; SELECT pg_reload_conf();";
  if (!one.login.empty()) {
    const std::string where = one.database.empty() ? "" : " IN DATABASE " + one.database;
    whose = "of login " + one.login;
    command = fmt::format("ALTER ROLE {}{} RESET session_replication_role;", one.login, where);
  } else if (!one.database.empty()) {
    whose = "of this database";
    command = fmt::format("ALTER DATABASE {} RESET session_replication_role;", one.database);
  }
  findings.add(one.login.empty() ? Severity::error : Severity::warning, "adoption", one.login,
               "session_replication_role of new sessions " + whose + " is replica",
               "what they insert into adopted tables is not forwarded: no event of it is delivered",
               std::move(command));
}

}  // namespace

void judge_adoptions(const std::vector<AdoptionRow>& rows, Findings& findings) {
  for (const AdoptionRow& row : rows) {
    if (row.fault != AdoptionFault::none) {
      findings.add(describe_fault(row, {}));
    } else if (row.is_unfinished()) {
      judge_unfinished(row, {}, findings);
    }
  }
}

void judge(const store::AdoptionsFacts& adoptions, const StoreName& name, Findings& findings) {
  for (const AdoptionFacts& one : adoptions.tables) judge_table(one, name, findings);
  for (const auto& one : adoptions.silent) judge_silent(one, findings);
  if (findings.complains("adoption")) return;
  if (adoptions.tables.empty()) return findings.ok("adoption", "no table is adopted");
  findings.ok("adoption",
              adoptions.tables.size() == 1
                  ? "the rows of " + adoptions.tables.front().row.table + " are forwarded"
                  : fmt::format("the rows of {} tables are forwarded", adoptions.tables.size()));
}

}  // namespace outbox::health
