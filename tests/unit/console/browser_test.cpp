// Requests that pages of other sites make.
#include "console/browser.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace outbox::console {
namespace {

int status(std::string_view method, const std::map<std::string, std::string>& headers,
           const Hosts& hosts = {}) {
  const auto get = [&](const char* name) {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string() : found->second;
  };
  const auto problem = check_origin(method, get, hosts);
  return problem ? problem->status : 200;
}

const std::map<std::string, std::string> kSafeChange{
    {"Host", "127.0.0.1:8484"}, {"Content-Type", "application/json"}, {"Outbox-Console", "1"}};

std::map<std::string, std::string> with(std::map<std::string, std::string> headers,
                                        const std::string& name, const std::string& value) {
  headers[name] = value;
  return headers;
}

TEST(Browser, names_of_this_machine_are_answered) {
  EXPECT_EQ(status("GET", {{"Host", "127.0.0.1:8484"}}), 200);
  EXPECT_EQ(status("GET", {{"Host", "localhost"}}), 200);
  EXPECT_EQ(status("GET", {{"Host", "[::1]:8484"}}), 200);
}

TEST(Browser, a_foreign_name_that_leads_here_is_refused) {
  EXPECT_EQ(status("GET", {{"Host", "attacker.example"}}), 403);
  EXPECT_EQ(status("GET", {{"Host", "localhost.attacker.example"}}), 403);
  EXPECT_EQ(status("GET", {}), 403);
}

TEST(Browser, a_name_that_was_allowed_is_answered) {
  const Hosts hosts{.loopback = true, .names = {"outbox.example"}};
  EXPECT_EQ(status("GET", {{"Host", "Outbox.Example"}}, hosts), 200);
  EXPECT_EQ(status("GET", {{"Host", "other.example"}}, hosts), 403);
}

TEST(Browser, a_change_needs_what_no_form_and_no_other_site_can_send) {
  EXPECT_EQ(status("POST", kSafeChange), 200);
  EXPECT_EQ(status("POST", with(kSafeChange, "Content-Type", "text/plain")), 415);
  EXPECT_EQ(status("POST", with(kSafeChange, "Content-Type", "application/json; charset=utf-8")),
            200);
  EXPECT_EQ(status("POST", with(kSafeChange, "Outbox-Console", "")), 403);
}

TEST(Browser, a_page_of_another_site_is_refused) {
  EXPECT_EQ(status("POST", with(kSafeChange, "Sec-Fetch-Site", "cross-site")), 403);
  EXPECT_EQ(status("POST", with(kSafeChange, "Sec-Fetch-Site", "same-site")), 403);
  EXPECT_EQ(status("POST", with(kSafeChange, "Sec-Fetch-Site", "same-origin")), 200);
  EXPECT_EQ(status("POST", with(kSafeChange, "Origin", "http://attacker.example")), 403);
  EXPECT_EQ(status("POST", with(kSafeChange, "Origin", "null")), 403);
  EXPECT_EQ(status("POST", with(kSafeChange, "Origin", "http://127.0.0.1:8484")), 200);
  EXPECT_EQ(status("GET", {{"Host", "localhost"}, {"Origin", "http://attacker.example"}}), 403);
}

}  // namespace
}  // namespace outbox::console
