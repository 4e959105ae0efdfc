// Findings about what the schema consists of: what differs from what `outbox migrate` made, and the
// statements that restore it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "health/doctor/store.hpp"

namespace outbox::health {
namespace {

using store::Definition;
using store::DefinitionChange;

/// How bad it is, and what it means, that a part was added whose name begins with `begins`. The
/// last addition matches every name.
struct Addition {
  std::string_view begins;
  Severity severity;
  const char* reason;
};
constexpr std::array kAdditions{
    Addition{"row level security", Severity::error,
             "it may hide events, which would not be delivered"},
    Addition{"forced row level security", Severity::error,
             "with row level security it hides events from the outbox's own functions, too"},
    Addition{"unlogged", Severity::error, "a crash of the server empties it"},
    Addition{"column", Severity::warning,
             "what writes whole rows may fail, and so may a later migration"},
    Addition{"partial index", Severity::warning,
             "a row for which it cannot be computed is refused"},
    Addition{"owner", Severity::warning,
             "its owner can change and remove it, and the outbox's own functions may lack rights"},
    Addition{"", Severity::error,
             "it acts on what writers and relays do, and can refuse, change or swallow it"}};

const char* reason_of_lack(const std::string& object, const std::string& part, bool gone) {
  if (part.find("index ") != std::string::npos)
    return "reads that need this index search the whole table: relays do not start without the indexes "
           "of the log, and without another one each read becomes slower with every row";
  if (gone && object.starts_with("table "))
    return "what uses this table fails, and its rows are gone: only a backup has them";
  if (gone || object.starts_with("function "))
    return "writers, relays and people who use it fail, or get another result";
  return "rows that are written there may be refused, or be wrong";
}

/// The first names, and how many more there are.
std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i)
    text.append(i == 0 ? "" : ", ").append(names[i]);
  if (names.size() > kMost) text += fmt::format(" and {} more", names.size() - kMost);
  return text;
}

std::string joined(const std::vector<std::string>& statements) {
  return fmt::format("{}", fmt::join(statements, "; "));
}

bool is_right(const DefinitionChange& one) {
  return !(one.wanted ? *one.wanted : *one.found).grantee.empty();
}

const std::string& object_name(const DefinitionChange& one) {
  return (one.wanted ? *one.wanted : *one.found).object;
}

class Comparison {
 public:
  Comparison(const store::SchemaFacts& facts, const Restore& restore, Findings& findings)
      : facts_(facts),
        restore_(restore),
        changes_(store::changes_between(facts.wanted, facts.found)),
        findings_(findings) {
    for (const Definition& one : facts.found) there_.insert(one.object);
  }

  void judge() {
    std::set<std::string_view> done;
    for (const DefinitionChange& one : changes_) {
      const std::string& object = object_name(one);
      if ((!is_right(one) || is_gone(object)) && done.insert(object).second) judge_object(object);
    }
    judge_rights();
    if (changes_.empty())
      findings_.ok("schema", "tables, functions and rights are as outbox migrate made them");
  }

 private:
  [[nodiscard]] bool is_gone(const std::string& object) const { return !there_.contains(object); }

  void judge_object(const std::string& object) {
    std::vector<std::string> lacks;
    std::vector<std::string> differs;
    std::vector<std::string> statements;
    bool remade = is_gone(object);
    for (const DefinitionChange& one : changes_) {
      if (object_name(one) != object || is_right(one)) continue;
      if (!one.wanted) {
        judge_addition(*one.found);
        continue;
      }
      (one.found ? differs : lacks).push_back(full_name(one));
      statements.push_back(one.wanted->makes);
      remade = remade || one.wanted->part.empty();
    }
    if (statements.empty()) return;
    std::string what = is_gone(object) ? "is missing" : "";
    if (what.empty() && !lacks.empty()) what = "lacks " + listed(lacks);
    if (!is_gone(object) && !differs.empty())
      what.append(what.empty() ? "" : "; ").append("differs in " + listed(differs));
    std::string command = restore_(remade ? join_all(object) : joined(statements), !lacks.empty());
    if (remade && !is_gone(object) && object.starts_with("table "))
      command = "it is for a person to change; it should be: " + statements.front();
    const std::string& part = lacks.empty() ? differs.front() : lacks.front();
    findings_.add(Severity::error, "schema", object, std::move(what),
                  reason_of_lack(object, part, is_gone(object)), std::move(command));
  }

  /// Returns the name of the part with the definition that stands there instead, if that is short.
  [[nodiscard]] static std::string full_name(const DefinitionChange& one) {
    constexpr std::size_t kShort = 200;
    std::string name = one.wanted->part.empty() ? "its definition" : one.wanted->part;
    if (one.found && one.found->makes.size() < kShort) name += ", which is " + one.found->makes;
    return name;
  }

  /// Returns the statements that make everything that belongs to the object, with its rights.
  [[nodiscard]] std::string join_all(const std::string& object) const {
    std::vector<std::string> statements;
    for (const Definition& one : facts_.wanted) {
      if (one.object == object) statements.push_back(one.makes);
    }
    return joined(statements);
  }

  void judge_addition(const Definition& one) {
    const auto* const kind =
        std::find_if(kAdditions.begin(), kAdditions.end(),
                     [&](const Addition& each) { return one.part.starts_with(each.begins); });
    const bool owner = kind->begins == "owner";
    findings_.add(kind->severity, owner ? "roles" : "schema", one.object,
                  owner ? "has another owner than the rest: " + one.makes
                        : "has what is not of the outbox: " + one.part,
                  kind->reason, restore_(one.undoes, false));
  }

  /// A right that was taken away appears as a REVOKE that was found but not wanted.
  void judge_rights() {
    struct Rights {
      std::vector<std::string> names;
      std::vector<std::string> statements;
    };
    std::map<std::string, std::pair<Rights, Rights>> by_role;
    for (const DefinitionChange& one : changes_) {
      if (!is_right(one) || is_gone(object_name(one))) continue;
      const Definition& right = one.wanted ? *one.wanted : *one.found;
      const bool lacks = right.makes.starts_with("GRANT") == one.wanted.has_value();
      auto& [missing, extra] = by_role[right.grantee];
      Rights& list = lacks ? missing : extra;
      list.names.push_back(right.part);
      list.statements.push_back(one.wanted ? right.makes : right.undoes);
    }
    for (const auto& [role, both] : by_role) {
      const auto& [missing, extra] = both;
      if (!missing.names.empty()) {
        findings_.add(Severity::error, "roles", role, "lacks " + listed(missing.names),
                      "whoever has this role fails where that is needed",
                      restore_(joined(missing.statements), false));
      }
      if (!extra.names.empty()) {
        findings_.add(Severity::warning, "roles", role, "has " + listed(extra.names),
                      "it does not need that, and a mistake can read, change or delete events",
                      restore_(joined(extra.statements), false));
      }
    }
  }

  const store::SchemaFacts& facts_;
  const Restore& restore_;
  const std::vector<DefinitionChange> changes_;
  Findings& findings_;
  std::set<std::string_view> there_;
};

}  // namespace

void judge_schema(const Result<store::SchemaFacts>& facts, const StoreName& name,
                  const Restore& restore, Findings& findings) {
  if (!facts) return findings.not_checked("schema", facts.error());
  const std::string wanted = store::made_by(facts->wanted);
  if (wanted == store::made_by(facts->found)) return Comparison(*facts, restore, findings).judge();
  findings.add(
      Severity::warning, "schema", "",
      wanted.empty()
          ? "tables, functions and rights were not compared: nothing is stored of what they should be"
          : "tables, functions and rights were not compared: another version of the database or of this program has "
            "stored what they should be (" +
                wanted + ")",
      "whether something of them is missing is not known; the command stores them as they are now",
      name.command("migrate"));
}

}  // namespace outbox::health
