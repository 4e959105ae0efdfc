#include "sink/postgres/error_map.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "pg/errors.hpp"

namespace outbox::sink::postgres {
namespace {

/// The verdict by SQLSTATE (PostgreSQL, appendix A, "Error Codes"); the first row that fits counts.
struct StateRow {
  std::string_view prefix;
  Verdict verdict;
};
constexpr std::array<StateRow, 31> kStateRows{{
    {"08", Verdict::lost},
    {"57P", Verdict::lost},
    {"25P03", Verdict::lost},  // The server ends the session at limits of a transaction's time.
    {"25P04", Verdict::lost},
    {"40003", Verdict::lost},
    {"40", Verdict::retry},
    {"55P03", Verdict::retry},
    {"57014", Verdict::retry},
    {"21", Verdict::event},  // One statement has the same event twice.
    {"22", Verdict::event},
    {"23", Verdict::event},
    {"44", Verdict::event},
    {"54", Verdict::event},
    {"P0", Verdict::event},  // A trigger raises these.
    {"F0", Verdict::blocked},
    {"HV", Verdict::blocked},
    {"XX", Verdict::blocked},
    {"53", Verdict::blocked},
    {"55", Verdict::blocked},
    {"57", Verdict::blocked},
    {"58", Verdict::blocked},
    {"72", Verdict::blocked},
    {"0", Verdict::blocked},
    {"1", Verdict::blocked},
    {"2", Verdict::blocked},
    {"3", Verdict::blocked},
    {"4", Verdict::blocked},
    {"A", Verdict::blocked},
    {"B", Verdict::blocked},
    {"C", Verdict::blocked},
    // Codes of neither the server nor the standard are raised by a trigger of the destination.
    {"", Verdict::event},
}};

struct Hint {
  std::string_view prefix;
  const char* text;
};
constexpr std::array<Hint, 21> kHints{{
    {"0A", "the connection may lead to a standby: list all hosts in postgres.url"},
    {"25006",
     "the server takes no writes now; list all hosts in postgres.url, the sink uses the one that does"},
    {"28", "check user, password and pg_hba.conf"},
    {"3D000", "create the database, or correct its name in postgres.url"},
    {"3F000", "create the schema, or correct postgres.table"},
    {"42P01", "create the table, or set postgres.create = true"},
    {"42703", "create the column, or correct postgres.columns"},
    {"42P10",
     "postgres.dedup_window = 0 needs a unique index on the column with {id} alone; "
     "postgres.delivered_table needs its primary key"},
    {"42501",
     "the login needs USAGE on the schema, INSERT on the table, and SELECT, INSERT, UPDATE, DELETE on the table of "
     "delivered ids"},
    {"53100", "free space on the server's disk"},
    {"53300", "raise max_connections of the server, or connect through a pooler"},
    {"54", "the event is too large or too deeply nested for the column or one of its indexes"},
    {"57014", "what holds locks on the table, or makes its triggers and indexes slow?"},
    {"55P03", "what holds locks on the table?"},
    {"22",
     "compare the types of the table's columns with postgres.columns; outbox parked edit corrects the event"},
    {"23505", "the table has a row with these values already"},
    {"23", "the table's constraint or the event is wrong; outbox parked edit corrects the event"},
    {"44", "the view does not accept such a row"},
    {"P0", "a trigger or function of the destination has raised this"},
    {"40", "another transaction was in the way; the events are sent again"},
    {"", ""},
}};

/// Our text for SQLSTATEs whose text from the server often quotes the value.
struct Meaning {
  std::string_view sqlstate;
  const char* text;
};
constexpr std::array<Meaning, 11> kMeanings{{
    {"22001", "a text is too long for its column"},
    {"22003", "a number is out of the range of its column"},
    {"22007", "a text is no date or time"},
    {"22008", "a date or time is out of range"},
    {"22012", "division by zero"},
    {"22021", "a text is not UTF-8, or has a zero byte"},
    {"22023", "a value is not valid for the type of its column"},
    {"22030", "a JSON object has a key twice"},
    {"22032", "a text is not JSON"},
    {"22P02", "a text is not valid for the type of its column"},
    {"22P05", "a text has a character that the database cannot store"},
}};

Remedy find_remedy(Verdict verdict) {
  switch (verdict) {
    case Verdict::event: return Remedy::fix;
    case Verdict::retry: return Remedy::retry_transaction;
    case Verdict::blocked: return Remedy::fix;
    case Verdict::lost: return Remedy::reconnect;
  }
  return Remedy::reconnect;
}

Errc choose_code(std::string_view sqlstate, Verdict verdict) {
  if (sqlstate == "23505") return Errc::already_exists;
  if (sqlstate == "22001" || sqlstate.starts_with("54")) return Errc::too_large;
  if (sqlstate.starts_with("42501") || sqlstate.starts_with("28")) return Errc::permission_denied;
  if (sqlstate.starts_with("42") || sqlstate.starts_with("3")) return Errc::not_found;
  if (sqlstate == "57014") return Errc::deadline_exceeded;
  return verdict == Verdict::event ? Errc::invalid_argument : Errc::unavailable;
}

std::string describe_words(const Failure& failure) {
  if (!failure.sqlstate.starts_with("22")) return pg::one_line(failure.said);
  const auto known = std::find_if(kMeanings.begin(), kMeanings.end(), [&](const Meaning& one) {
    return failure.sqlstate == one.sqlstate;
  });
  return known == kMeanings.end() ? "a value does not fit its column" : known->text;
}

}  // namespace

Verdict find_verdict(std::string_view sqlstate) noexcept {
  return std::find_if(kStateRows.begin(), kStateRows.end(),
                      [&](const StateRow& row) { return sqlstate.starts_with(row.prefix); })
      ->verdict;
}

Error describe(const Failure& failure, std::string_view place) {
  const Verdict verdict = find_verdict(failure.sqlstate);
  const auto hint = std::find_if(kHints.begin(), kHints.end(), [&](const Hint& one) {
    return failure.sqlstate.starts_with(one.prefix);
  });
  std::string message = "postgres: ";
  message.append(place).append(": ").append(describe_words(failure));
  message.append(" (").append(failure.sqlstate).append(")");
  return {.code = choose_code(failure.sqlstate, verdict),
          .remedy = find_remedy(verdict),
          .effect = verdict == Verdict::lost ? Effect::unknown : Effect::none,
          .message = std::move(message),
          .hint = failure.hint.empty() || failure.sqlstate.starts_with("22")
                      ? hint->text
                      : pg::one_line(failure.hint),
          .origin = "pg:" + failure.sqlstate};
}

}  // namespace outbox::sink::postgres
