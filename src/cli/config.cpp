// outbox config: checks, shows and documents the configuration.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/count.hpp"
#include "base/setting.hpp"
#include "cli/exit.hpp"
#include "cli/monitoring.hpp"
#include "cli/output.hpp"
#include "cli/verbs.hpp"
#include "config/settings_page.hpp"
#include "console/openapi.hpp"
#include "metrics/metric.hpp"

namespace outbox::cli {
namespace {

using config::Entry;
using config::Problem;

struct ConfigOptions {
  bool metrics{false};
  bool openapi{false};
  bool json{false};
};

Json to_json(const Problem& problem) {
  Json json{
      {"what", problem.what}, {"path", or_null(problem.path)}, {"where", or_null(problem.where)}};
  if (problem.at.line != 0) {
    json["line"] = problem.at.line;
    json["column"] = problem.at.column;
  }
  json["hint"] = or_null(problem.hint);
  return json;
}

void print_check(const ConfigOptions& options, const std::string& file,
                 const std::vector<std::string>& warnings, const config::Problems& problems) {
  if (!options.json) {
    for (const auto& warning : warnings) print_error("warning: " + warning);
    for (const auto& problem : problems) print_error(problem.text());
    return;
  }
  Json list = Json::array();
  for (const auto& problem : problems) list.push_back(to_json(problem));
  print_json({{"ok", problems.empty()},
              {"file", or_null(file)},
              {"problems", list},
              {"warnings", warnings}});
}

int check(const ConfigOptions& options, const Context& context) {
  config::Request request = context.request(Subscriptions::used, Tasks::used, Consumers::used);
  request.thorough = true;
  const auto loaded = config::load(request);
  if (!loaded) {
    print_check(options, config::find_path(request), {}, loaded.error());
    return kCheckFailed;
  }
  config::Problems problems;
  if (const Status listens = check_monitor(loaded->config); !listens)
    problems.push_back({.what = listens.error().message,
                        .path = "http.listen",
                        .where = loaded->file.empty() ? "no file" : loaded->file,
                        .at = {},
                        .hint = listens.error().hint});
  print_check(options, loaded->file, loaded->warnings, problems);
  if (!problems.empty()) return kCheckFailed;
  if (options.json) return kOk;
  const std::string file = loaded->file.empty() ? "no file" : loaded->file;
  print("{}: ok, {}\n", file, count("subscription", loaded->config.relay.subscriptions.size()));
  return kOk;
}

/// A key that contains a dot needs quotes.
std::string key_text(const std::string& key) {
  return key.find('.') == std::string::npos ? key : quote(key);
}

void show_text(const config::Loaded& loaded) {
  constexpr std::size_t kWidest = 60;
  std::vector<std::string> lines;
  std::size_t width = 0;
  for (const Entry& entry : loaded.entries) {
    lines.push_back(key_text(entry.key) + " = " + toml_text(entry.value));
    width = std::max(width, std::min(lines.back().size(), kWidest));
  }
  std::string section;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Entry& entry = loaded.entries[i];
    if (entry.section != section) print("{}[{}]\n", section.empty() ? "" : "\n", entry.section);
    section = entry.section;
    print("{:<{}}  # {}\n", lines[i], width, entry.origin);
  }
}

void show_json(const config::Loaded& loaded) {
  Json settings = Json::array();
  for (const Entry& entry : loaded.entries) {
    settings.push_back({{"section", entry.section},
                        {"key", entry.key},
                        {"value", entry.value},
                        {"origin", entry.origin}});
  }
  print_json({{"file", or_null(loaded.file)}, {"settings", settings}});
}

int show(const ConfigOptions& options, const Context& context) {
  const auto loaded = context.configuration(Subscriptions::unused);
  options.json ? show_json(loaded) : show_text(loaded);
  return kOk;
}

int reference(bool metrics, bool openapi) {
  if (metrics && openapi)
    throw Failure(kUsage, "--metrics and --openapi are two documents", "choose one");
  write_out(openapi   ? console::openapi_document()
            : metrics ? metrics::metrics_page()
                      : config::settings_page());
  return kOk;
}

}  // namespace

void add_config(CLI::App& root, Context& context) {
  auto options = std::make_shared<ConfigOptions>();
  CLI::App& verb = add_verb(root, "config", "Check, show or document the configuration");
  add_example(verb, "outbox config check");
  CLI::App& checking = add_verb(verb, "check", "Report every error; exit 3 when there is one",
                                [options, &context] { return check(*options, context); });
  add_option(checking, "--json", &options->json, {}, "As JSON");
  add_example(checking, "outbox config check -c outbox.toml");
  CLI::App& showing =
      add_verb(verb, "show", "What is in effect and where it comes from, without passwords",
               [options, &context] { return show(*options, context); });
  add_option(showing, "--json", &options->json, {}, "As JSON");
  add_example(showing, "outbox config show --set relay.page=500");
  CLI::App& documenting =
      add_verb(verb, "reference", "All settings as a page of Markdown",
               [options] { return reference(options->metrics, options->openapi); });
  add_option(documenting, "--metrics", &options->metrics, {}, "All metrics instead");
  add_option(documenting, "--openapi", &options->openapi, {},
             "The API of outbox console instead, as OpenAPI 3.1");
  add_example(documenting, "outbox config reference");
}

}  // namespace outbox::cli
