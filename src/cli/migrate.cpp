// outbox migrate: brings the schema to what this program needs.
#include <string>

#include "cli/exit.hpp"
#include "cli/json.hpp"
#include "cli/output.hpp"
#include "cli/verbs.hpp"
#include "config/redact.hpp"

namespace outbox::cli {
namespace {

struct Options {
  bool print{false};
  bool status{false};
  bool json{false};
};

int print_sql(const config::Loaded& loaded) {
  write_out(must(store::print_migrations(Context::store_options(loaded))));
  return kOk;
}

int show_status(const Options& options, store::Store& store) {
  const store::SchemaState state = must(store.schema_state());
  const bool current = state.version == state.wanted;
  if (options.json) {
    Json json;
    json.object()
        .member("version", state.version)
        .member("wanted", state.wanted)
        .member("current", current)
        .end()
        .print();
  } else if (current) {
    print("schema version {}, current\n", state.version);
  } else if (state.version == 0) {
    print("no schema yet, this program needs version {} (hint: outbox migrate)\n", state.wanted);
  } else {
    print("schema version {}, this program needs {} (hint: {})\n", state.version, state.wanted,
          state.version < state.wanted ? "outbox migrate" : "use a newer outbox");
  }
  return current ? kOk : kCheckFailed;
}

int apply(const Options& options, const std::string& url, store::Store& store) {
  const auto applied = must(store.migrate());
  if (options.json) {
    Json json;
    json.object().key("applied").array();
    for (const auto& name : applied) json.value(name);
    json.end().end().print();
    return kOk;
  }
  for (const auto& name : applied) print("applied {}\n", name);
  if (applied.empty()) print("nothing to do: the schema is current\n");
  if (!applied.empty()) print("{} is ready\n", config::redact(url));
  return kOk;
}

int migrate(const Options& options, const Context& context) {
  if (options.print && options.status)
    throw Failure(kUsage,
                  "--print and --status exclude each other: outbox migrate (hint: choose one)");
  const auto loaded = context.configuration(Subscriptions::unused);
  if (options.print) return print_sql(loaded);
  const auto store = Context::store(loaded);
  if (options.status) return show_status(options, *store);
  return apply(options, loaded.config.relay.store_url, *store);
}

}  // namespace

void add_migrate(Command& root, Context& context) {
  auto options = std::make_shared<Options>();
  Command verb = root.verb("migrate", "Create or update the schema; safe to repeat");
  verb.option("--print", &options->print, {}, "Print the SQL instead; connects to nothing");
  verb.option("--status", &options->status, {},
              "Say which version is there; exit 3 when it is not the one needed");
  verb.option("--json", &options->json, {}, "As JSON");
  verb.run([options, &context] { return migrate(*options, context); });
}

}  // namespace outbox::cli
