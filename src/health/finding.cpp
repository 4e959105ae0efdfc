#include "health/finding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/text.hpp"

namespace outbox::health {
namespace {

constexpr const char* kWhoLocks =
    "SELECT DISTINCT a.pid, a.application_name, a.xact_start FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE "
    "l.granted AND l.mode = 'AccessExclusiveLock';";

bool ends_in_command(const std::string& text) {
  if (text.find('\n') != std::string::npos || text.ends_with(';')) return false;
  return text.starts_with("outbox ") || text.find(": outbox ") != std::string::npos ||
         text.find("; outbox ") != std::string::npos;
}

bool names_store(const std::string& command, const std::string& options) {
  return command.find(" --store ") != std::string::npos ||
         command.find(options) != std::string::npos;
}

}  // namespace

const char* to_string(Severity severity) noexcept {
  switch (severity) {
    case Severity::ok: return "ok";
    case Severity::note: return "note";
    case Severity::warning: return "warning";
    case Severity::error: return "error";
  }
  return "error";
}

std::string Finding::headline() const {
  return check + (subject.empty() ? "" : " " + subject) + ": " + what;
}

std::string Finding::text() const {
  return headline() + (reason.empty() ? "" : "; " + reason) +
         (command.empty() ? "" : " (hint: " + command + ")");
}

void Findings::add(Severity severity, std::string check, std::string subject, std::string what,
                   std::string reason, std::string command) {
  add({severity, std::move(check), std::move(subject), std::move(what), std::move(reason),
       std::move(command)});
}

void Findings::problem(Severity severity, std::string check, std::string subject, std::string what,
                       std::string reason, std::string command) {
  add(severity, std::move(check), std::move(subject), std::move(what), std::move(reason),
      std::move(command));
  all_.back().problem = true;
}

void Findings::not_checked(std::string check, const Error& error, std::string subject) {
  const bool no_right = error.code == Errc::permission_denied;
  const bool locked = error.origin == "pg:55P03" && error.hint.empty();
  add(no_right ? Severity::note : Severity::warning, std::move(check), std::move(subject),
      "not checked: " + error.message,
      no_right ? "this login lacks the right to ask, so nobody knows whether it is in order"
               : "nobody knows whether it is in order",
      locked ? kWhoLocks : error.hint);
}

void Findings::append(Findings others) {
  all_.insert(all_.end(), std::make_move_iterator(others.all_.begin()),
              std::make_move_iterator(others.all_.end()));
}

void Findings::name_store(const std::string& options) {
  for (Finding& one : all_) {
    if (ends_in_command(one.command) && !names_store(one.command, options)) one.command += options;
  }
}

std::vector<Finding> Findings::sorted() const {
  std::vector<Finding> list = all_;
  std::stable_sort(list.begin(), list.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return list;
}

bool Findings::complains(std::string_view check) const {
  return std::any_of(all_.begin(), all_.end(), [&](const Finding& one) {
    return one.check == check && one.severity != Severity::ok;
  });
}

std::size_t count(const std::vector<Finding>& findings, Severity severity) {
  return static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(),
                    [&](const Finding& one) { return one.severity == severity; }));
}

std::string about(std::chrono::microseconds length) {
  using std::chrono::duration_cast;
  if (length >= std::chrono::hours(48))
    return fmt::format("{} days", duration_cast<std::chrono::hours>(length).count() / 24);
  if (length >= std::chrono::hours(1))
    return fmt::format("{} h", duration_cast<std::chrono::hours>(length).count());
  if (length >= std::chrono::minutes(1))
    return fmt::format("{} min", duration_cast<std::chrono::minutes>(length).count());
  if (length >= std::chrono::seconds(1))
    return fmt::format("{} s", duration_cast<std::chrono::seconds>(length).count());
  return fmt::format("{} ms", duration_cast<std::chrono::milliseconds>(length).count());
}

std::string about_bytes(std::int64_t bytes) {
  constexpr std::array kUnits{"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto size = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; size >= 1024 && unit + 1 < kUnits.size(); ++unit) size /= 1024;
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} {}", size, kUnits[unit]);
}

std::string identifier(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + '"';
}

std::string shell_word(std::string_view word) {
  const auto harmless = [](char c) {
    return is_alnum(c) || std::string_view("-_./:=@%+,").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), harmless)) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace outbox::health
