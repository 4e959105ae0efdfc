#include "store/migrations.hpp"

#include "base/error.hpp"

namespace outbox::store {
namespace {

tl::unexpected<Error> other_version(const SchemaState& state, const std::string& place,
                                    const std::string& hint) {
  return fail(Errc::unsupported,
              place + " has schema version " + std::to_string(state.version) +
                  ", this program needs " + std::to_string(state.wanted),
              hint);
}

}  // namespace

SchemaState schema_state(std::span<const Migration> ours,
                         std::span<const AppliedMigration> applied) {
  SchemaState state{.version = applied.empty() ? 0 : applied.back().version,
                    .wanted = ours.empty() ? 0 : ours.back().version,
                    .edited = {}};
  for (const AppliedMigration& one : applied) {
    if (one.version > state.wanted || !state.edited.empty()) break;
    const Migration& known = ours[static_cast<std::size_t>(one.version) - 1];
    if (one.checksum != known.checksum) state.edited = known.name;
  }
  return state;
}

Status check_migratable(const SchemaState& state, const std::string& place) {
  if (state.version > state.wanted) return other_version(state, place, "use a newer outbox");
  if (state.edited.empty()) return {};
  return fail(Errc::unsupported,
              place + ": migration " + state.edited + " differs from the one that was applied",
              "another build of this version created it; use that build, or start with a new one");
}

Status check_version(const SchemaState& state, const std::string& place,
                     const std::string& migrate) {
  if (state.version == 0) return fail(Errc::not_found, place + " has no outbox", "run: " + migrate);
  if (state.version == state.wanted) return {};
  return other_version(state, place,
                       state.version < state.wanted ? "run: " + migrate : "use a newer outbox");
}

std::string migration_script(const Migration& migration, std::string_view begin,
                             std::string_view sql, std::string_view table) {
  std::string text = "-- migration ";
  text.append(migration.name).append("\n").append(begin).append("\n").append(sql);
  text.append("\nINSERT INTO ").append(table).append(" (version, name, checksum) VALUES (");
  text.append(std::to_string(migration.version)).append(", '").append(migration.name);
  return text.append("', '").append(migration.checksum).append("');\nCOMMIT;\n");
}

}  // namespace outbox::store
