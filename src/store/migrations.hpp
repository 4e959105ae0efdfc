// Migrations: those embedded into the binary (cmake/EmbedSql.cmake), and those applied to a store.
#pragma once

#include <outbox/error.hpp>
#include <span>
#include <string>
#include <string_view>

#include "store/store.hpp"

namespace outbox::store {

/// A migration is never edited after a release.
struct Migration {
  int version{0};  ///< 1, 2, 3 ...: the number that its name begins with.
  std::string_view name;
  std::string_view sql;
  std::string_view checksum;  ///< SHA-256 of the file, in hex.
};

/// A row of the table of migrations.
struct AppliedMigration {
  int version{0};
  std::string checksum;
};

/// Both lists must be in the order of their versions.
[[nodiscard]] SchemaState schema_state(std::span<const Migration> ours,
                                       std::span<const AppliedMigration> applied);

/// Whether migrations can be applied: refuses a newer schema, and one whose migrations had another
/// text, which would leave two databases of one version with different tables. `place` is for the
/// message, such as "schema outbox".
[[nodiscard]] Status check_migratable(const SchemaState& state, const std::string& place);
/// Whether this program can work with the schema. `migrate` is the command that brings it up to
/// date.
[[nodiscard]] Status check_version(const SchemaState& state, const std::string& place,
                                   const std::string& migrate);

/// The migration with its record, as a script. `sql` is its text as this store runs it.
[[nodiscard]] std::string migration_script(const Migration& migration, std::string_view begin,
                                           std::string_view sql, std::string_view table);

}  // namespace outbox::store
