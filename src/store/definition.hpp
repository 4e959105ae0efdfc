// What a store's schema consists of, as the database itself prints it. `migrate` stores that, and `outbox doctor` compares it with what
// is there (docs/design/doctor.md). Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace outbox::store {

/// One fact about the schema, as the statement that makes it so. It can also be run where the fact is only different.
struct Definition {
  std::string object{};  ///< "table outbox.parked"; empty: not of the schema, but about the list.
  std::string
      part{};  ///< Of the object: "index parked_id", "SELECT ON outbox.parked"; may be empty.
  std::string grantee{};  ///< Of a right; "PUBLIC" is everybody.
  std::string makes{};
  std::string undoes{};  ///< Empty: only by removing the object.

  [[nodiscard]] bool operator==(const Definition&) const = default;
};

using Definitions = std::vector<Definition>;

/// Both: it differs.
struct DefinitionChange {
  std::optional<Definition> wanted{};  ///< None: it was added.
  std::optional<Definition> found{};   ///< None: it is missing.
};

/// What tells how the list was made, by which server and program; lists that differ in it cannot be compared. Empty: there is no list.
[[nodiscard]] std::string made_by(const Definitions& list);

/// In the order of `wanted`, then what was added. Additions that are no change of ours are left out: whole objects of somebody else,
/// and indexes that can refuse no row.
[[nodiscard]] std::vector<DefinitionChange> changes_between(const Definitions& wanted,
                                                            const Definitions& found);

/// What is wanted after a migration that found `before` and left `after`: what somebody had changed before stays a change.
[[nodiscard]] Definitions wanted_after(const Definitions& wanted, const Definitions& before,
                                       const Definitions& after);

}  // namespace outbox::store
