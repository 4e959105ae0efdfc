// Tests checks that run beside each other, and the order of findings.
#include <future>
#include <stdexcept>

#include "base/error.hpp"
#include "findings.hpp"
#include "health/doctor/checks.hpp"

namespace outbox::health {
namespace {

using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

Findings one_ok(const char* check) {
  Findings findings;
  findings.ok(check, "fine");
  return findings;
}

TEST(DoctorChecks, one_that_fails_leaves_the_others) {
  Checks checks;
  checks.start("a", "", [](const Checks::Report& report) { report(one_ok("a")); });
  checks.start("b", "x", [](const Checks::Report&) { throw std::runtime_error("broken"); });
  const Findings found = checks.wait(Clock::now() + std::chrono::hours(1));
  expect_in_order(found, "a");
  EXPECT_THAT(complaint(found, "b").what, HasSubstr("broken"));
  EXPECT_FALSE(checks.hangs());
}

TEST(DoctorChecks, one_that_fails_without_a_reason_is_a_finding) {
  Checks checks;
  checks.start("empty", "", [](const Checks::Report&) { throw std::runtime_error(""); });
  checks.start("number", "", [](const Checks::Report&) { throw 7; });
  const Findings found = checks.wait(Clock::now() + std::chrono::hours(1));
  for (const char* const check : {"empty", "number"}) {
    EXPECT_EQ(complaint(found, check).severity, Severity::error) << check;
    EXPECT_EQ(complaint(found, check).what, "the check failed, and does not say why");
  }
  EXPECT_FALSE(checks.hangs());
}

TEST(DoctorChecks, one_that_hangs_is_not_waited_for) {
  std::promise<void> end;
  std::promise<void> reported;
  Checks checks;
  checks.start("slow", "orders", [&](const Checks::Report& report) {
    report(one_ok("slow"));
    reported.set_value();
    end.get_future().wait();
  });
  reported.get_future().wait();
  const Findings found = checks.wait(Clock::now());
  EXPECT_EQ(complaint(found, "slow").subject, "orders");
  EXPECT_EQ(complaint(found, "slow").severity, Severity::error);
  EXPECT_EQ(count(found.all(), Severity::ok), 1U) << "what it had reported";
  EXPECT_TRUE(checks.hangs());
  end.set_value();
}

TEST(DoctorChecks, a_check_can_start_others) {
  Checks checks;
  checks.start("a", "", [&](const Checks::Report&) {
    checks.start("b", "", [](const Checks::Report& report) { report(one_ok("b")); });
  });
  expect_in_order(checks.wait(Clock::now() + std::chrono::hours(1)), "b");
}

TEST(DoctorFindings, the_worst_comes_first_else_the_order_stays) {
  Findings findings;
  findings.ok("a", "");
  findings.not_checked("b", fail(Errc::permission_denied, "", "").value());
  findings.not_checked("c", fail(Errc::unavailable, "", "").value());
  findings.ok("d", "");
  std::string order;
  for (const Finding& one : findings.sorted()) order += one.check;
  EXPECT_EQ(order, "cbad");
}

TEST(DoctorFindings, commands_name_the_store) {
  const std::string store = " --store sqlite:a.db";
  const std::vector<std::pair<std::string, std::string>> all{
      {"outbox relay", "outbox relay --store sqlite:a.db"},
      {"outbox subscription apply -c outbox.toml",
       "outbox subscription apply -c outbox.toml --store sqlite:a.db"},
      {"once it is stopped: outbox status",
       "once it is stopped: outbox status --store sqlite:a.db"},
      {"start one; outbox tasks list", "start one; outbox tasks list --store sqlite:a.db"},
      {"outbox migrate" + store, "outbox migrate" + store},
      {"outbox migrate --store sqlite:a.db switches it",
       "outbox migrate --store sqlite:a.db switches it"},
      {"SELECT 'x: outbox y';", "SELECT 'x: outbox y';"},
      {"make it", "make it"},
      {"", ""}};
  Findings findings;
  for (const auto& [before, after] : all)
    findings.add(Severity::note, "check", "", "what", "reason", before);
  Findings local = findings;
  findings.name_store(store);
  local.name_store("");
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(findings.all()[i].command, all[i].second);
    EXPECT_EQ(local.all()[i].command, all[i].first);
  }
}

TEST(DoctorFindings, words_for_a_shell) {
  EXPECT_EQ(shell_word("orders-1"), "orders-1");
  EXPECT_EQ(shell_word("it's; rm"), "'it'\\''s; rm'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(DoctorFindings, names_in_statements) {
  EXPECT_EQ(identifier("shop"), "\"shop\"");
  EXPECT_EQ(identifier("x\"; DROP TABLE y; --"), "\"x\"\"; DROP TABLE y; --\"");
}

TEST(DoctorFindings, the_names_are_frozen) {
  EXPECT_STREQ(to_string(Severity::ok), "ok");
  EXPECT_STREQ(to_string(Severity::note), "note");
  EXPECT_STREQ(to_string(Severity::warning), "warning");
  EXPECT_STREQ(to_string(Severity::error), "error");
}

}  // namespace
}  // namespace outbox::health
