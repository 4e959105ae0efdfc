#include "cli/command.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/exit.hpp"
#include "cli/output.hpp"

namespace outbox::cli {
namespace {

/// An option's value that cannot be converted.
struct BadValue {
  std::string what;
  std::string hint;
};

/// CLI11's own conversions interpret some texts, such as {} and [a,b]; these take what was typed.
struct Converter {
  const std::string& name;
  const CLI::results_t& given;

  bool operator()(bool* into) const { return *into = true; }
  template <class Text>
  bool operator()(Text* into) const {
    *into = given.front();
    return true;
  }
  bool operator()(std::vector<std::string>* into) const {
    *into = given;
    return true;
  }
  bool operator()(std::uint64_t* into) const {
    const std::string& text = given.front();
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, *into);
    if (error == std::errc() && stop == end && !text.empty()) return true;
    if (error == std::errc::result_out_of_range)
      throw BadValue{name + ": the number " + text + " is too large", {}};
    throw BadValue{name + ": expected a whole number, found \"" + text + "\"", {}};
  }
  bool operator()(std::optional<std::uint64_t>* into) const { return (*this)(&into->emplace()); }
  bool operator()(std::chrono::milliseconds* into) const {
    const auto value = parse_duration(given.front());
    if (!value) throw BadValue{name + ": " + value.error().message, value.error().hint};
    *into = std::chrono::duration_cast<std::chrono::milliseconds>(*value);
    return true;
  }
};

std::string default_text(const Into& into) {
  if (const auto* const text = std::get_if<std::string*>(&into)) return **text;
  if (const auto* const number = std::get_if<std::uint64_t*>(&into))
    return std::to_string(**number);
  if (const auto* const time = std::get_if<std::chrono::milliseconds*>(&into))
    return format_duration(**time);
  return {};
}

bool is_many(const Into& into) { return std::holds_alternative<std::vector<std::string>*>(into); }

CLI::Option& add(CLI::App& app, const std::string& names, const Into& into,
                 const std::string& help) {
  const std::string name = names.substr(names.rfind(',') + 1);
  const CLI::callback_t convert = [name, into](const CLI::results_t& given) {
    return std::visit(Converter{name, given}, into);
  };
  if (std::holds_alternative<bool*>(into)) {
    const auto set = [convert] { convert({}); };
    return *app.add_flag_callback(names, set, help)->disable_flag_override();
  }
  CLI::Option& option = *app.add_option(names, convert, help);
  if (is_many(into)) {
    option.expected(1, CLI::detail::expected_max_vector_size)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    option.allow_extra_args(false);
  } else {
    option.expected(1)->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  }
  if (const std::string text = default_text(into); !text.empty()) option.default_str(text);
  return option;
}

/// The innermost verb that was recognized.
const CLI::App& deepest(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().back();
  return *at;
}

std::string full_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name()
                                     : full_name(*app.get_parent()) + " " + app.get_name();
}

std::string suggestion(std::string_view word, const std::vector<std::string>& known,
                       const std::string& otherwise) {
  const std::vector<std::string_view> views(known.begin(), known.end());
  return did_you_mean(word, views, otherwise);
}

std::vector<std::string> names_of_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* at = &app; at != nullptr; at = at->get_parent()) {
    for (const CLI::Option* option : at->get_options()) {
      if (option->get_group().empty()) continue;
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

/// A message such as "unknown verb deliver: outbox (hint: ...)".
std::string usage(const CLI::App& at, const std::string& what, const std::string& hint) {
  return what + ": " + full_name(at) + " (hint: " + hint + ")";
}

/// The message about a word that no verb, option or argument accepts.
std::string unexpected(const CLI::App& at, const std::string& word) {
  const std::string help = "see " + full_name(at) + " --help";
  if (word.starts_with('-')) {
    const std::string name = word.substr(0, word.find('='));
    const auto known = names_of_options(at);
    if (std::find(known.begin(), known.end(), name) != known.end())
      return usage(at, "unexpected argument " + name, "options go before --");
    return usage(at, "unknown option " + name, suggestion(name, known, help));
  }
  const auto verbs = at.get_subcommands([](const CLI::App* verb) { return is_shown(*verb); });
  if (verbs.empty()) return usage(at, "unexpected argument \"" + word + "\"", help);
  std::vector<std::string> names;
  names.reserve(verbs.size());
  for (const CLI::App* verb : verbs) names.push_back(verb->get_name());
  return usage(at, "unknown verb " + word, suggestion(word, names, help));
}

int print_usage_error(const CLI::App& at, const std::string& what, const std::string& hint) {
  print_error(usage(at, what, hint.empty() ? "see " + full_name(at) + " --help" : hint));
  return kUsage;
}

/// The option that a message of CLI11 begins with: "--limit: 1 required N missing".
const CLI::Option* blamed_option(const CLI::App& app, const std::string& message) {
  const std::string name = message.substr(0, message.find_first_of(": "));
  for (const CLI::App* at = &app; at != nullptr; at = at->get_parent()) {
    for (const CLI::Option* option : at->get_options()) {
      if (option->check_name(name) || option->check_name("--" + name)) return option;
    }
  }
  return nullptr;
}

/// An option or an argument has too few or too many values.
int wrong_count(const CLI::App& at, const CLI::ParseError& error) {
  const std::string message = error.what();
  const CLI::Option* const option = blamed_option(at, message);
  if (option == nullptr) return print_usage_error(at, "cannot understand the arguments", {});
  const std::string name = option->get_name();
  if (option->get_positional())
    return print_usage_error(at, name + " is missing", full_name(at) + " " + name);
  if (option->count() > 1)
    return print_usage_error(at, name + " is given more than once", "give it once");
  if (option->get_expected_min() == 0)
    return print_usage_error(at, name + " takes no value", "write " + name + " alone");
  return print_usage_error(at, name + " has no value", name + " " + option->get_type_name());
}

int usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& at = deepest(app);
  const auto rest = app.remaining(true);
  const auto* const extra = dynamic_cast<const CLI::ExtrasError*>(&error);
  if (extra == nullptr || rest.empty()) return wrong_count(at, error);
  print_error(unexpected(at, rest.front()));
  return kUsage;
}

/// Adds the options of every verb to each verb's help.
class HelpText : public CLI::Formatter {
 public:
  std::string make_footer(const CLI::App* app) const override {
    return common_options(*app) + CLI::Formatter::make_footer(app);
  }

 private:
  [[nodiscard]] std::string common_options(const CLI::App& app) const {
    const CLI::App* root = &app;
    while (root->get_parent() != nullptr) root = root->get_parent();
    if (root == &app) return {};
    std::string text = "Options of every verb:\n";
    for (const CLI::Option* option : root->get_options()) {
      if (!option->get_configurable() || option->get_positional()) continue;
      text += make_option(option, false);
    }
    return text + "\n";
  }
};

int show_help(const CLI::App& root, const std::vector<std::string>& verbs) {
  const CLI::App* at = &root;
  for (const std::string& name : verbs) {
    const auto found =
        at->get_subcommands([&](const CLI::App* verb) { return verb->get_name() == name; });
    if (found.empty()) throw Failure(kUsage, unexpected(*at, name));
    at = found.front();
  }
  write_out(at->get_formatter()->make_help(at, full_name(*at), CLI::AppFormatMode::Normal));
  return kOk;
}

void add_help(CLI::App& root) {
  auto verbs = std::make_shared<std::vector<std::string>>();
  CLI::App& verb = add_verb(root, "help", "Show the help of a verb, as outbox VERB --help does",
                            [&root, verbs] { return show_help(root, *verbs); });
  add_argument(verb, "VERB", verbs.get(), "Which one; all are listed without it");
  add_example(verb, "outbox help subscription apply");
}

}  // namespace

CLI::App& add_verb(CLI::App& parent, const std::string& name, const std::string& help,
                   std::function<int()> body) {
  CLI::App& app = *parent.add_subcommand(name, help);
  app.fallthrough()->group(help.empty() ? "" : "Verbs")->footer("");  // not the parent's
  parent.require_subcommand(0, 1);
  if (body) set_body(app, std::move(body));
  return app;
}

bool is_shown(const CLI::App& verb) { return !verb.get_group().empty(); }

void add_option(CLI::App& app, const std::string& names, Into into, const std::string& value,
                const std::string& help) {
  CLI::Option& option = add(app, names, into, help);
  if (!value.empty()) option.type_name(value);
  if (help.empty()) option.group("");
}

void add_option_or(CLI::App& app, const std::string& names, std::optional<std::string>* into,
                   const std::string& without, const std::string& value, const std::string& help) {
  const CLI::callback_t convert = [into, without](const CLI::results_t& given) {
    *into = given.empty() || given.front().empty() ? without : given.front();
    return true;
  };
  app.add_option(names, convert, help)->expected(0, 1)->type_name("[" + value + "]");
}

void add_argument(CLI::App& app, const std::string& name, Into into, const std::string& help) {
  CLI::Option& option = add(app, name, into, help);
  option.type_name("");
  if (is_many(into)) option.allow_extra_args(true);
  if (std::holds_alternative<std::string*>(into)) option.required();
}

void add_footer(CLI::App& app, const std::string& text) { app.footer(text); }

void add_example(CLI::App& app, const std::string& line) {
  const std::string before = app.get_footer();
  const bool first = before.find("Example:\n") == std::string::npos;
  app.footer(before + (before.empty() ? "" : "\n") +
             (first ? std::string(before.empty() ? "" : "\n") + "Example:\n  " : "  ") + line);
}

void set_body(CLI::App& program, std::function<int()> body) {
  program.final_callback([body = std::move(body)] { throw CLI::RuntimeError(body()); });
}

int run(const Program& program, int argc, const char* const* argv) {
  CLI::App app(program.help, program.name);
  app.set_help_flag("-h,--help", "Show this help");
  app.set_version_flag("-V,--version", program.name + " " + OUTBOX_VERSION, "Show the version");
  app.formatter(std::make_shared<HelpText>());
  app.get_formatter()->column_width(34);
  app.get_formatter()->label("SUBCOMMAND", "VERB");
  program.add(app);
  const bool has_verbs = !app.get_subcommands([](const CLI::App*) { return true; }).empty();
  if (has_verbs) add_help(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RuntimeError& done) {
    return done.get_exit_code();  // of the verb, see set_body()
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error);
  } catch (const BadValue& bad) {
    return print_usage_error(deepest(app), bad.what, bad.hint);
  }
  write_err(app.help());
  return kUsage;
}

}  // namespace outbox::cli
