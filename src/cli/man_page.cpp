#include "cli/man_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace outbox::cli {
namespace {

/// The text as man shows it unchanged: what roff interprets is escaped, and quotes and hyphens stay
/// ASCII, so that they can be copied.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\\': out += "\\e"; break;
      case '-': out += "\\-"; break;
      case '\'': out += "\\(aq"; break;
      case '`': out += "\\(ga"; break;
      case '^': out += "\\(ha"; break;
      case '~': out += "\\(ti"; break;
      default: out += c;
    }
  }
  return out.starts_with('.') ? "\\&" + out : out;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }

std::string header(const std::string& name, const std::string& help, const std::string& date) {
  std::string title = name;
  std::transform(title.begin(), title.end(), title.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return fmt::format(
      ".\\\" Written by: outbox man\n.TH {} 1 {} \"outbox {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n",
      title, date, OUTBOX_VERSION, roff(name), roff(help));
}

std::size_t indentation(const std::string& line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

std::vector<std::string> text_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

/// The text below the options in --help: lines that begin with blanks stay as they are, and one
/// with lines below it that are indented further is a term that these explain.
std::string notes(const std::string& text) {
  constexpr std::size_t kExplained = 4;
  const std::vector<std::string> lines = text_lines(text);
  std::string out;
  bool verbatim = false;
  const auto end_verbatim = [&] {
    if (verbatim) out += ".fi\n.RE\n";
    verbatim = false;
  };
  bool paragraph = true;  // the next line begins one
  std::size_t term = std::string::npos;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    const std::size_t depth = indentation(line);
    if (line.empty()) {
      end_verbatim();
      paragraph = true;
      continue;
    }
    const bool explained =
        depth > 0 && i + 1 < lines.size() && indentation(lines[i + 1]) >= depth + kExplained;
    if (explained) {
      end_verbatim();
      term = depth;
      out += ".TP\n" + bold(line.substr(depth)) + "\n";
    } else if (term != std::string::npos && depth > term) {
      out += roff(line.substr(depth)) + "\n";
    } else if (depth > 0) {
      if (!verbatim) out += ".PP\n.RS 4\n.nf\n";
      verbatim = true;
      out += roff(line.substr(std::min<std::size_t>(depth, 2))) + "\n";
    } else {
      end_verbatim();
      if (paragraph || term != std::string::npos) out += ".PP\n";
      out += roff(line) + "\n";
      term = std::string::npos;
    }
    paragraph = false;
  }
  end_verbatim();
  return out;
}

/// The arguments in a form such as \fIVERB\fR [\fIEVENT\fR ...].
std::string arguments(const VerbDefinition& verb) {
  std::string text;
  for (const OptionDefinition& argument : verb.arguments) {
    const std::string name = italic(argument.value) + (argument.many ? " ..." : "");
    text += argument.required ? " " + name : " [" + name + "]";
  }
  return text;
}

std::string command(const std::string& path) { return path.empty() ? "outbox" : "outbox " + path; }

std::string synopsis(const VerbDefinition& verb) {
  std::string text = bold(command(verb.path)) + " [" + italic("OPTION") + " ...]";
  return text + arguments(verb);
}

std::string option_text(const OptionDefinition& option, bool argument) {
  std::string text = ".TP\n";
  if (argument) {
    text += italic(option.value);
  } else {
    for (const std::string& name : option.names)
      text += (name == option.names.front() ? "" : ", ") + bold(name);
    if (!option.value.empty())
      text +=
          option.value_optional ? " [" + italic(option.value) + "]" : " " + italic(option.value);
  }
  text += "\n" + roff(option.help);
  if (!option.default_value.empty()) text += " (default: " + roff(option.default_value) + ")";
  return text + "\n";
}

std::string option_list(const VerbDefinition& verb) {
  std::string text;
  for (const OptionDefinition& argument : verb.arguments) text += option_text(argument, true);
  for (const OptionDefinition& option : verb.options) {
    if (option.names.back() != "--help") text += option_text(option, false);
  }
  return text;
}

std::string examples(const VerbDefinition& verb) {
  if (verb.examples.empty()) return {};
  std::string text = ".RS 4\n.nf\n";
  for (const std::string& line : verb.examples) text += roff(line) + "\n";
  return text + ".fi\n.RE\n";
}

/// Each verb below this one that does something, as a section of its own.
std::string inner_verbs(const VerbDefinition& verb) {
  std::string text;
  for (const VerbDefinition& inner : verb.verbs) {
    text += ".SS " + roff(command(inner.path)) + "\n" + synopsis(inner) + "\n.PP\n" +
            roff(inner.help) + ".\n";
    text += notes(inner.notes) + option_list(inner);
    if (!inner.examples.empty()) text += ".PP\n" + examples(inner);
    text += inner_verbs(inner);
  }
  return text;
}

std::string synopses(const VerbDefinition& verb) {
  if (verb.verbs.empty()) return synopsis(verb) + "\n";
  std::string text;
  for (const VerbDefinition& inner : verb.verbs)
    text += (text.empty() ? "" : ".br\n") + synopses(inner);
  return text;
}

constexpr const char* kProgram =
    R"(.SH ENVIRONMENT
.TP
\fBOUTBOX_CONFIG\fR
The configuration, when \fB\-\-config\fR is not given.
.TP
\fBOUTBOX_STORE_URL\fR, \fBOUTBOX_RELAY_PAGE\fR, ...
A setting: its name in capital letters, with underscores for dots. Overrides the file.
.SH FILES
.TP
\fIoutbox.toml\fR
The configuration, when it is in the working directory and no other one is named. \fBoutbox init\fR writes a first one,
\fBoutbox config reference\fR prints all settings.
.SH EXIT STATUS
.TP
0
Done.
.TP
1
An error.
.TP
2
Wrong usage.
.TP
3
A check failed.
.TP
4
Interrupted before it was done.
.TP
5
The store cannot be used now, and nothing was done: the same command may succeed later.
)";

}  // namespace

std::string program_page(const VerbDefinition& program, const std::string& date) {
  std::string text = header("outbox", "transactional outbox for PostgreSQL and SQLite", date);
  text += ".SH SYNOPSIS\n" + bold("outbox") + " [" + italic("OPTION") + " ...] " + italic("VERB") +
          " [" + italic("ARGUMENT") + " ...]\n";
  text += ".SH DESCRIPTION\n" + roff(program.help) +
          "\n.PP\nEach verb has a page of its own.\n.SH VERBS\n";
  std::string see;
  for (const VerbDefinition& verb : program.verbs) {
    text += ".TP\n" + bold(verb.name) + "\n" + roff(verb.help) + ".\n";
    see += (see.empty() ? "" : ",\n") + bold("outbox-" + verb.name) + "(1)";
  }
  text += ".SH OPTIONS\nOf every verb:\n";
  for (const OptionDefinition& option : program.options) text += option_text(option, false);
  return text + kProgram + ".SH SEE ALSO\n" + see + "\n";
}

std::string verb_page(const VerbDefinition& verb, const std::string& date) {
  std::string text = header("outbox-" + verb.name, verb.help, date);
  text += ".SH SYNOPSIS\n" + synopses(verb) + ".SH DESCRIPTION\n" + roff(verb.help) + ".\n";
  text += notes(verb.notes);
  if (!verb.verbs.empty()) text += ".SH VERBS\n" + inner_verbs(verb);
  const std::string own = option_list(verb);
  text += ".SH OPTIONS\n" + own;
  text += std::string(own.empty() ? "" : ".PP\n") + "The options of every verb, such as " +
          bold("--config") + " and " + bold("--store") + ", are in\n" + bold("outbox") + "(1).\n";
  if (!verb.examples.empty()) text += ".SH EXAMPLES\n" + examples(verb);
  return text + ".SH SEE ALSO\n" + bold("outbox") + "(1)\n";
}

}  // namespace outbox::cli
