// outbox migrate: creates or updates the schema.
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/verbs.hpp"
#include "store/url.hpp"

namespace outbox::cli {
namespace {

struct MigrateOptions {
  bool print{false};
  bool status{false};
  bool lookup_indexes{false};
  bool wal{false};
  bool json{false};
};

int print_sql(const config::Loaded& loaded) {
  write_out(must(store::print_migrations(Context::store_options(loaded))));
  return kOk;
}

bool is_current(const store::SchemaState& state) {
  return state.version == state.wanted && state.edited.empty();
}

std::string describe(const store::SchemaState& state) {
  const std::string version = "schema version " + std::to_string(state.version);
  const std::string wanted = std::to_string(state.wanted);
  if (is_current(state)) return version + ", current";
  if (state.version == 0)
    return "no schema yet, this program needs version " + wanted + " (hint: outbox migrate)";
  if (state.version > state.wanted)
    return version + ", this program needs " + wanted + " (hint: use a newer outbox)";
  if (!state.edited.empty()) {
    return version + ", but migration " + state.edited +
           " differs from the one that was applied (hint: the schema was made by another build; use that one)";
  }
  return version + ", this program needs " + wanted + " (hint: outbox migrate)";
}

int show_status(const MigrateOptions& options, store::Store& store) {
  const store::SchemaState state = must(store.schema_state());
  const bool current = is_current(state);
  if (options.json) {
    print_json({{"version", state.version},
                {"wanted", state.wanted},
                {"current", current},
                {"edited", or_null(state.edited)}});
  } else {
    print("{}\n", describe(state));
  }
  return current ? kOk : kCheckFailed;
}

int apply(const MigrateOptions& options, const std::string& url, store::Store& store) {
  std::optional<Waiting> waiting;
  waiting.emplace("updating the schema");
  const auto applied = must(store.migrate());
  std::vector<std::string> indexes;
  if (options.lookup_indexes) {
    waiting.emplace("making the indexes");
    indexes = must(store.make_lookup_indexes());
  }
  std::string publication;
  if (options.wal) publication = must(store.make_wal_publication());
  waiting.reset();
  if (options.json) {
    Json done{{"applied", applied}};
    if (options.lookup_indexes) done["indexes"] = indexes;
    if (options.wal) done["publication"] = or_null(publication);
    print_json(done);
    return kOk;
  }
  for (const auto& name : applied) print("applied {}\n", name);
  for (const auto& name : indexes) print("made the index {}\n", name);
  if (!publication.empty()) print("made {}\n", publication);
  if (applied.empty() && indexes.empty() && publication.empty())
    print("nothing to do: the schema is current\n");
  if (!applied.empty()) print("{} is ready\n", store::shown_url(url));
  return kOk;
}

int migrate(const MigrateOptions& options, const Context& context) {
  if (options.print && options.status)
    throw Failure(kUsage, "--print and --status exclude each other: outbox migrate", "choose one");
  if (options.print && options.json)
    throw Failure(kUsage, "--print and --json exclude each other: outbox migrate",
                  "leave --json out; SQL is printed");
  const bool changes = options.lookup_indexes || options.wal;
  if (changes && (options.print || options.status)) {
    const std::string option = options.lookup_indexes ? "--with-lookup-indexes" : "--with-wal";
    throw Failure(kUsage, option + " changes the schema: outbox migrate",
                  "leave --print and --status out");
  }
  const auto loaded = context.store_configuration();
  if (options.print) return print_sql(loaded);
  const auto store = Context::store(loaded);
  if (options.status) return show_status(options, *store);
  return apply(options, loaded.config.relay.store_url, *store);
}

}  // namespace

void add_migrate(CLI::App& root, Context& context) {
  auto options = std::make_shared<MigrateOptions>();
  CLI::App& verb = add_verb(root, "migrate", "Create or update the schema; safe to repeat",
                            [options, &context] { return migrate(*options, context); });
  add_option(verb, "--print", &options->print, {}, "Print the SQL instead; connects to nothing");
  add_option(verb, "--status", &options->status, {},
             "Show the schema's version; exit 3 when it is not the one needed, or differs from it");
  add_option(verb, "--with-lookup-indexes", &options->lookup_indexes, {},
             "Also make the indexes that find events by id and key; each costs every writer");
  add_option(verb, "--with-wal", &options->wal, {},
             "Also make the publication with which relays follow the write-ahead log (relay.feed)");
  add_option(verb, "--json", &options->json, {}, "As JSON");
  add_example(verb, "outbox migrate --store sqlite:shop.db");
}

}  // namespace outbox::cli
