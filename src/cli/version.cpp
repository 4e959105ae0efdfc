// outbox version: what this binary is.
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/verbs.hpp"
#include "sink/registry.hpp"

namespace outbox::cli {
namespace {

std::vector<const char*> stores() {
  std::vector<const char*> names;
#ifdef OUTBOX_WITH_POSTGRES
  names.push_back("postgresql");
#endif
#ifdef OUTBOX_WITH_SQLITE
  names.push_back("sqlite");
#endif
  return names;
}

int version(bool as_json) {
  if (!as_json) {
    print("outbox {}\n", OUTBOX_VERSION);
    return kOk;
  }
  Json sinks = Json::array();
  for (const auto& kind : sink::kinds()) sinks.push_back(kind.name);
  print_json({{"version", OUTBOX_VERSION}, {"stores", stores()}, {"sinks", sinks}});
  return kOk;
}

}  // namespace

void add_version(CLI::App& root, Context& /*context*/) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App& verb =
      add_verb(root, "version", "Show the version", [as_json] { return version(*as_json); });
  add_option(verb, "--json", as_json.get(), {}, "As JSON, with the stores and sinks built in");
  add_example(verb, "outbox version --json");
}

}  // namespace outbox::cli
