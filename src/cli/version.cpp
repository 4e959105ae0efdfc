// outbox version: what this binary is.
#include <vector>

#include "cli/exit.hpp"
#include "cli/json.hpp"
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
  Json json;
  json.object().member("version", OUTBOX_VERSION).key("stores").array();
  for (const char* const store : stores()) json.value(store);
  json.end().key("sinks").array();
  for (const auto& sink : sink::all_sinks()) json.value(sink.name);
  json.end().end().print();
  return kOk;
}

}  // namespace

void add_version(Command& root, Context& /*context*/) {
  auto as_json = std::make_shared<bool>(false);
  Command verb = root.verb("version", "Show the version");
  verb.option("--json", as_json.get(), {}, "As JSON, with the stores and sinks built in");
  verb.example("outbox version --json");
  verb.run([as_json] { return version(*as_json); });
}

}  // namespace outbox::cli
