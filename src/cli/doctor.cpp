// outbox doctor: looks at everything that deliveries rest on, and says what is wrong and what mends
// it; repairs an outbox that was restored into another database.
#include "health/doctor/doctor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/count.hpp"
#include "base/log.hpp"
#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "store/url.hpp"

namespace outbox::cli {
namespace {

using health::Finding;
using health::Severity;

struct DoctorOptions {
  bool repair_lineage{false};
  bool apply{false};
  bool strict{false};
  bool json{false};
  std::chrono::milliseconds timeout{std::chrono::seconds(30)};
};

// ---- the findings

Json to_json(const Finding& one) {
  return {{"check", one.check},
          {"subject", or_null(one.subject)},
          {"severity", health::to_string(one.severity)},
          {"what", one.what},
          {"reason", or_null(one.reason)},
          {"command", or_null(one.command)}};
}

/// The command with its own line ends, which matter in the body of a function, and with nothing
/// else that controls a terminal.
std::string command_lines(const std::string& command) {
  std::string text;
  std::istringstream lines(command);
  for (std::string line; std::getline(lines, line);)
    text.append(text.empty() ? "" : "\n").append(plain(line));
  return text;
}

void print_finding(const Finding& one) {
  print("{:<8} {}\n", health::to_string(one.severity), plain(one.headline()));
  if (one.severity == Severity::ok) return;
  print("         {}\n", plain(one.reason));
  if (!one.command.empty()) print("         > {}\n", command_lines(one.command));
}

void print_findings(const std::vector<Finding>& findings) {
  for (const Finding& one : findings) print_finding(one);
  print("\n{}, {}, {}; {} in order\n", count("error", health::count(findings, Severity::error)),
        count("warning", health::count(findings, Severity::warning)),
        count("note", health::count(findings, Severity::note)),
        health::count(findings, Severity::ok));
}

/// One line for each finding that fails the check.
std::vector<std::string> failures(const DoctorOptions& options,
                                  const std::vector<Finding>& findings) {
  std::vector<std::string> lines;
  for (const Finding& one : findings) {
    const bool fails =
        one.severity == Severity::error || (options.strict && one.severity == Severity::warning);
    if (!fails) continue;
    const bool shown_above = one.command.find('\n') != std::string::npos;
    const std::string hint = shown_above ? "run what stands behind > above" : one.command;
    lines.push_back(one.headline() + (hint.empty() ? "" : " (hint: " + hint + ")"));
  }
  return lines;
}

// ---- what is looked at

/// What can be used of a configuration with problems: the configuration without the values that its
/// references name or, if that has problems too, only the store that flags and the environment
/// name.
config::Loaded usable_part(const Context& context) {
  if (auto loose = config::load(context.request(Subscriptions::unused))) return std::move(*loose);
  config::Loaded loaded;
  const auto take = [&](const std::string& path, const std::string& value) {
    if (path == "store.url" && store::check_url(value)) loaded.config.relay.store_url = value;
    if (path == "store.schema") loaded.config.relay.schema = value;
  };
  for (const char* const path : {"store.url", "store.schema"}) {
    const std::string name = config::environment_name(config::find_setting(path)->setting);
    if (const char* const value = std::getenv(name.c_str())) take(path, value);
  }
  for (const config::Flag& flag : context.request(Subscriptions::unused).flags)
    take(flag.path, flag.value);
  return loaded;
}

/// Ends the verb if all problems are those of the command line.
void refuse_typed(const config::Problems& problems) {
  std::vector<std::string> lines;
  for (const config::Problem& one : problems) {
    if (!one.where.starts_with("--")) return;
    lines.push_back(one.text());
  }
  throw Failure(kUsage, std::move(lines));
}

health::StoreName make_store_name(const Context& context, const config::Loaded& loaded) {
  const RelayOptions& relay = loaded.config.relay;
  health::StoreName name{.shown = store::shown_url(relay.store_url), .options = {}};
  const auto flags = context.request(Subscriptions::unused).flags;
  const bool typed = std::any_of(flags.begin(), flags.end(),
                                 [](const auto& flag) { return flag.path == "store.url"; });
  if (!loaded.file.empty() && loaded.file != "outbox.toml")
    name.options += " -c " + health::shell_word(loaded.file);
  const bool elsewhere = typed || loaded.file.empty();
  if (elsewhere && !relay.store_url.empty())
    name.options += " --store " + health::shell_word(name.shown);
  if (relay.schema != RelayOptions().schema) name.options += " --schema " + relay.schema;
  return name;
}

/// What sinks log is in the findings, so only errors are logged unless a level is set.
void configure_log(const config::Config& config) {
  const bool usual = config.log_level == config::Config().log_level;
  log::configure(usual ? "error" : config.log_level,
                 config.log_format == "json" ? log::Format::json : log::Format::text);
}

int examine(const DoctorOptions& options, const Context& context) {
  config::Request request = context.request(Subscriptions::used, Tasks::used, Consumers::used);
  request.thorough = true;
  auto loaded = config::load(request);
  if (!loaded) refuse_typed(loaded.error());
  health::Findings all =
      loaded ? health::judge_configuration(*loaded) : health::judge_problems(loaded.error());
  health::Patient patient{.loaded = loaded ? std::move(*loaded) : usable_part(context),
                          .store = {}};
  patient.store = make_store_name(context, patient.loaded);
  configure_log(patient.loaded.config);

  health::Doctor doctor(patient, options.timeout);
  all.append(doctor.examine());
  all.name_store(patient.store.options);
  const std::vector<Finding> findings = all.sorted();
  if (options.json) {
    Json list = Json::array();
    for (const Finding& one : findings) list.push_back(to_json(one));
    print_json(list);
  } else {
    print_findings(findings);
  }
  const std::vector<std::string> lines = failures(options, findings);
  if (doctor.hangs()) {  // threads that nothing can end
    for (const std::string& line : lines) print_error(line);
    (void)flush_out();
    std::_Exit(kCheckFailed);
  }
  if (!lines.empty()) throw Failure(kCheckFailed, lines);
  return kOk;
}

// ---- the repair

void print_repair(const store::LineageRepair& repair, bool applied) {
  Json pending = Json::array();
  for (const auto& [subscription, events] : repair.pending)
    pending.push_back({{"subscription", subscription}, {"events", events}});
  print_json({{"needed", repair.needed},
              {"applied", applied && repair.needed},
              {"restored", repair.restored},
              {"written_since", repair.fresh},
              {"pending", pending}});
}

int repair_lineage(const DoctorOptions& options, store::Store& store) {
  const store::LineageRepair repair =
      must(options.apply ? store.repair_lineage() : store.plan_lineage_repair());
  if (options.json) {
    print_repair(repair, options.apply);
    return kOk;
  }
  if (!repair.needed) {
    print("the outbox is of this database: there is nothing to repair\n");
    return kOk;
  }
  print("{} restored, {} {} written since\n\n", count("event", repair.restored, "was", "were"),
        repair.fresh, repair.fresh == 1 ? "was" : "were");
  Table table({"SUBSCRIPTION", "PENDING OF THE RESTORED"});
  for (const auto& [subscription, events] : repair.pending)
    table.add({plain(subscription), std::to_string(events)});
  table.print();
  if (options.apply) {
    print("\nrepaired: relays deliver these first, then what was written since\n");
  } else {
    print(
        "\nnothing was changed (--apply repairs; writers wait meanwhile). What the original delivers after the dump is pending\n"
        "here, too: stop its relays before\n");
  }
  return kOk;
}

int doctor(const DoctorOptions& options, const Context& context) {
  if (options.apply && !options.repair_lineage)
    throw Failure(kUsage, "--apply: of what?", "--repair-lineage --apply");
  if (options.strict && options.repair_lineage)
    throw Failure(kUsage, "--strict: the repair checks nothing", "leave one of the two out");
  if (options.timeout < std::chrono::seconds(1))
    throw Failure(kUsage, "--timeout: is shorter than a second", "--timeout 30s");
  if (!options.repair_lineage) return examine(options, context);
  const auto store = Context::store(context.store_configuration());
  return repair_lineage(options, *store);
}

}  // namespace

void add_doctor(CLI::App& root, Context& context) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App& verb =
      add_verb(root, "doctor", "Find what keeps events from being delivered, and say what mends it",
               [options, &context] { return doctor(*options, context); });
  add_option(verb, "--strict", &options->strict, {}, "Exit 3 also for warnings");
  add_option(verb, "--timeout", &options->timeout, "TIME", "For all checks together");
  add_option(verb, "--json", &options->json, {}, "As JSON: an array of findings");
  add_option(verb, "--repair-lineage", &options->repair_lineage, {},
             "After a dump and restore: show what is pending in the copy, and let it be delivered");
  add_option(verb, "--apply", &options->apply, {},
             "Do it; without it only shows what would be done");
  add_footer(
      verb,
      "Looks at the configuration, the store, what is delivered and each destination; changes nothing, and goes on when one\n"
      "cannot be reached. Exit 3 if there is an error. Run it as the relay runs: same machine, same login, same environment.\n"
      "The repair needs the rights of the schema's owner.");
  add_example(verb, "outbox doctor --strict");
  add_example(verb, "outbox doctor --repair-lineage");
}

}  // namespace outbox::cli
