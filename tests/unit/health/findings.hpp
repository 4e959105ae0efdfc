// Looks for the findings that a test expects.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "health/finding.hpp"

namespace outbox::health {

/// The only finding of this check that is not `ok`. If there is none, or more than one, returns a
/// finding that says how many there are.
inline Finding complaint(const Findings& findings, std::string_view check) {
  std::vector<Finding> found;
  for (const Finding& one : findings.all()) {
    if (one.check == check && one.severity != Severity::ok) found.push_back(one);
  }
  if (found.size() == 1) return found.front();
  return {.severity = Severity::ok,
          .check = std::string(check),
          .subject = {},
          .what = std::to_string(found.size()) + " complaints"};
}

/// Expects findings of this check, all of them `ok`.
inline void expect_in_order(const Findings& findings, std::string_view check) {
  EXPECT_FALSE(findings.complains(check)) << check;
  EXPECT_TRUE(std::any_of(findings.all().begin(), findings.all().end(),
                          [&](const Finding& one) { return one.check == check; }))
      << check << " was not looked at";
}

}  // namespace outbox::health
