// outbox config: checks, shows and documents the configuration.
#include <algorithm>
#include <string>
#include <vector>

#include "cli/exit.hpp"
#include "cli/json.hpp"
#include "cli/output.hpp"
#include "cli/verbs.hpp"
#include "config/assign.hpp"
#include "config/settings_page.hpp"

namespace outbox::cli {
namespace {

using config::Entry;
using config::Problem;

struct Options {
  bool json{false};
};

void put(Json& json, const Problem& problem) {
  json.object()
      .member("what", problem.what)
      .member_or_null("path", problem.path)
      .member_or_null("where", problem.where);
  if (problem.at.line != 0)
    json.member("line", problem.at.line).member("column", problem.at.column);
  json.member_or_null("hint", problem.hint).end();
}

void print_check(const Options& options, const std::string& file,
                 const std::vector<std::string>& warnings, const config::Problems& problems) {
  if (!options.json) {
    for (const auto& warning : warnings) print_error("warning: " + warning);
    for (const auto& problem : problems) print_error(problem.text());
    return;
  }
  Json json;
  json.object().member("ok", problems.empty()).member_or_null("file", file).key("problems").array();
  for (const auto& problem : problems) put(json, problem);
  json.end().key("warnings").array();
  for (const auto& warning : warnings) json.value(warning);
  json.end().end().print();
}

int check(const Options& options, const Context& context) {
  config::Request request = context.request(Subscriptions::used);
  request.thorough = true;
  const auto loaded = config::load(request);
  if (!loaded) {
    print_check(options, config::file_of(request), {}, loaded.error());
    return kCheckFailed;
  }
  print_check(options, loaded->file, loaded->warnings, {});
  if (options.json) return kOk;
  const std::size_t count = loaded->config.relay.subscriptions.size();
  const std::string file = loaded->file.empty() ? "no file" : loaded->file;
  print("{}: ok, {} subscription{}\n", file, count, count == 1 ? "" : "s");
  return kOk;
}

/// Keys and sections with a dot of their own stand in quotes.
std::string key_text(const std::string& key) {
  return key.find('.') == std::string::npos ? key : config::quote(key);
}

void show_text(const config::Loaded& loaded) {
  constexpr std::size_t kWidest = 60;
  std::vector<std::string> lines;
  std::size_t width = 0;
  for (const Entry& entry : loaded.entries) {
    lines.push_back(key_text(entry.key) + " = " + entry.toml);
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
  Json json;
  json.object().member_or_null("file", loaded.file).key("settings").array();
  for (const Entry& entry : loaded.entries) {
    json.object().member("section", entry.section).member("key", entry.key);
    json.key("value").literal(entry.json).member("origin", entry.origin).end();
  }
  json.end().end().print();
}

int show(const Options& options, const Context& context) {
  const auto loaded = context.configuration(Subscriptions::unused);
  options.json ? show_json(loaded) : show_text(loaded);
  return kOk;
}

int reference() {
  write_out(config::settings_page());
  return kOk;
}

}  // namespace

void add_config(Command& root, Context& context) {
  auto options = std::make_shared<Options>();
  Command verb = root.verb("config", "Check, show or document the configuration");
  verb.example("outbox config check");
  Command checking = verb.verb("check", "Find every mistake; exit 3 when there is one");
  checking.option("--json", &options->json, {}, "As JSON");
  checking.example("outbox config check -c outbox.toml");
  checking.run([options, &context] { return check(*options, context); });
  Command showing =
      verb.verb("show", "What is in effect and where it comes from, without passwords");
  showing.option("--json", &options->json, {}, "As JSON");
  showing.example("outbox config show --set relay.page=500");
  showing.run([options, &context] { return show(*options, context); });
  Command documenting = verb.verb("reference", "All settings as a page of Markdown");
  documenting.example("outbox config reference");
  documenting.run([] { return reference(); });
}

}  // namespace outbox::cli
