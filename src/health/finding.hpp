// What `outbox doctor` and `outbox status` say is wrong: one finding for each thing that was looked
// at (docs/guide/doctor.md). Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <outbox/error.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace outbox::health {

/// Scripts rely on these words and on the names of checks: neither may change.
enum class Severity : std::uint8_t {
  ok,
  note,     ///< Worth knowing, or a question without an answer.
  warning,  ///< Will become a problem, or weakens a promise.
  error,    ///< Events are not delivered, or can be lost.
};

[[nodiscard]] const char* to_string(Severity severity) noexcept;

struct Finding {
  Severity severity{Severity::ok};
  std::string check;    ///< The name of the check, such as "sequence".
  std::string subject;  ///< The subscription, table or role in question; may be empty.
  std::string what;
  std::string reason{};  ///< What it means for events.
  /// What mends it: a shell command, which may stand behind words and a colon or semicolon, or a
  /// statement, which ends in ';'.
  std::string command{};
  /// Whether something stands still or is late, and a person has to act: `outbox status` names the
  /// finding, and its --check fails.
  bool problem{false};

  /// Returns a text such as "sequence event_seq: has CACHE 32".
  [[nodiscard]] std::string headline() const;
  /// Returns a text such as "relays: no relay is alive; nothing is delivered (hint: outbox relay)".
  [[nodiscard]] std::string text() const;
};

/// Collects findings of checks.
class Findings {
 public:
  void add(Finding one) { all_.push_back(std::move(one)); }
  /// `subject` may be empty.
  void add(Severity severity, std::string check, std::string subject, std::string what,
           std::string reason, std::string command);
  /// Adds a finding that `outbox status` names and for which its --check fails.
  void problem(Severity severity, std::string check, std::string subject, std::string what,
               std::string reason, std::string command);
  void ok(std::string check, std::string what) {
    add({.severity = Severity::ok,
         .check = std::move(check),
         .subject = {},
         .what = std::move(what)});
  }
  /// Adds a note if a right is missing, else a warning, since something might be wrong and nobody
  /// knows.
  void not_checked(std::string check, const Error& error, std::string subject = {});
  /// Calls `judge` with the answer to a question about the store, or not_checked() if there is no
  /// answer.
  template <class T, class Judge>
  void check(const char* name, const Result<T>& answer, const Judge& judge) {
    answer ? judge(*answer) : not_checked(name, answer.error());
  }
  void append(Findings others);
  /// Appends the options, such as " --store sqlite:shop.db", to each `command` that ends in a
  /// command of outbox and does not name its store yet.
  void name_store(const std::string& options);
  /// The findings, the worst first; those of one severity in the order in which they were added.
  [[nodiscard]] std::vector<Finding> sorted() const;
  [[nodiscard]] const std::vector<Finding>& all() const noexcept { return all_; }
  /// Whether the check has a finding that is not ok.
  [[nodiscard]] bool complains(std::string_view check) const;

 private:
  std::vector<Finding> all_;
};

[[nodiscard]] std::size_t count(const std::vector<Finding>& findings, Severity severity);

/// A text such as "3 h", "12 min" or "45 s", rounded down to the largest unit.
[[nodiscard]] std::string about(std::chrono::microseconds length);
/// A text such as "1.2 GiB".
[[nodiscard]] std::string about_bytes(std::int64_t bytes);
/// A name in a statement, in double quotes.
[[nodiscard]] std::string identifier(std::string_view name);
/// A word for a shell, in single quotes unless it needs none.
[[nodiscard]] std::string shell_word(std::string_view word);

}  // namespace outbox::health
