// Who asks the console: tokens, sessions, and what becomes of wrong ones.
#include "console/authenticator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/error.hpp"

namespace outbox::console {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr const char* kPeer = "127.0.0.1";

class AuthenticatorTest : public testing::Test {
 protected:
  Authenticator make(Authenticator::Options options = {}) {
    options.read_tokens = [this]() -> Result<std::vector<KnownToken>> {
      ++reads_;
      if (away_) return fail(Errc::unavailable, "the store is away");
      return tokens_;
    };
    options.steady = [this] { return Authenticator::SteadyTime(now_); };
    options.wall = [this] { return Authenticator::WallTime(now_); };
    return Authenticator(std::move(options));
  }
  void add(const std::string& name, const std::string& token, Role role = Role::operates,
           std::optional<std::chrono::seconds> expires = {}) {
    KnownToken row{.name = name, .digest = digest_token(token), .role = role};
    if (expires)
      row.expires_us = std::chrono::duration_cast<std::chrono::microseconds>(*expires).count();
    tokens_.push_back(row);
  }
  static Headers with(std::map<std::string, std::string> headers) {
    return [headers = std::move(headers)](const char* name) {
      const auto found = headers.find(name);
      return found == headers.end() ? std::string() : found->second;
    };
  }
  static Headers bearer(const std::string& token) {
    return with({{"Authorization", "Bearer " + token}});
  }
  static Headers cookie(const std::string& id) {
    return with({{"Cookie", "other=1; outbox-session=" + id}});
  }
  static int status(const tl::expected<Person, Problem>& found) {
    return found ? 200 : found.error().status;
  }

  std::vector<KnownToken> tokens_;
  std::chrono::seconds now_{1000};
  bool away_{false};
  int reads_{0};
};

TEST_F(AuthenticatorTest, a_token_says_who_asks_and_what_they_may_do) {
  add("anna", "secret");
  auto authenticator = make();
  const auto person = authenticator.identify(bearer("secret"), kPeer);
  ASSERT_TRUE(person);
  EXPECT_EQ(person->name, "anna");
  EXPECT_EQ(person->role, Role::operates);
  EXPECT_FALSE(person->payloads);
}

TEST_F(AuthenticatorTest, without_a_token_or_with_a_wrong_one_nobody_gets_in) {
  add("anna", "secret");
  auto authenticator = make();
  EXPECT_EQ(status(authenticator.identify(with({}), kPeer)), 401);
  EXPECT_EQ(status(authenticator.identify(bearer("guess"), kPeer)), 401);
  EXPECT_EQ(status(authenticator.identify(bearer(""), kPeer)), 401);
  EXPECT_EQ(status(authenticator.identify(with({{"Authorization", "Basic c2VjcmV0"}}), kPeer)),
            401);
  EXPECT_EQ(status(authenticator.identify(cookie("guess"), kPeer)), 401);
  // The hash, which a dump of the database has, is no token.
  EXPECT_EQ(status(authenticator.identify(bearer(digest_token("secret")), kPeer)), 401);
}

TEST_F(AuthenticatorTest, a_token_that_has_expired_is_refused) {
  add("anna", "secret", Role::views, 2000s);
  auto authenticator = make();
  EXPECT_EQ(status(authenticator.identify(bearer("secret"), kPeer)), 200);
  now_ = 2000s;
  EXPECT_EQ(status(authenticator.identify(bearer("secret"), kPeer)), 401);
}

TEST_F(AuthenticatorTest, a_removed_token_and_its_sessions_end_within_five_seconds) {
  add("anna", "secret");
  auto authenticator = make();
  const auto session = authenticator.log_in("secret", kPeer);
  ASSERT_TRUE(session);
  EXPECT_EQ(status(authenticator.identify(cookie(session->id), kPeer)), 200);
  tokens_.clear();
  now_ += 5s;
  EXPECT_EQ(status(authenticator.identify(bearer("secret"), kPeer)), 401);
  EXPECT_EQ(status(authenticator.identify(cookie(session->id), kPeer)), 401);
}

TEST_F(AuthenticatorTest, the_store_is_asked_once_in_five_seconds) {
  add("anna", "secret");
  auto authenticator = make();
  for (int i = 0; i < 100; ++i) (void)authenticator.identify(bearer("guess"), kPeer);
  EXPECT_EQ(reads_, 1);
  now_ += 5s;
  (void)authenticator.identify(bearer("secret"), kPeer);
  EXPECT_EQ(reads_, 2);
}

TEST_F(AuthenticatorTest, while_the_store_is_away_those_who_are_known_stay_known) {
  add("anna", "secret");
  auto authenticator = make();
  away_ = true;
  EXPECT_EQ(status(authenticator.identify(bearer("secret"), kPeer)), 503);
  away_ = false;
  EXPECT_EQ(status(authenticator.identify(bearer("secret"), kPeer)), 200);
  away_ = true;
  now_ += 1h;
  EXPECT_EQ(status(authenticator.identify(bearer("secret"), kPeer)), 200);
}

TEST_F(AuthenticatorTest, a_session_ends_when_it_is_not_used_and_after_twelve_hours) {
  add("anna", "secret");
  auto authenticator = make();
  const std::string idle = authenticator.log_in("secret", kPeer)->id;
  const std::string busy = authenticator.log_in("secret", kPeer)->id;
  for (int i = 0; i < 25; ++i) {
    now_ += 29min;
    const int expected = i < 24 ? 200 : 401;
    EXPECT_EQ(status(authenticator.identify(cookie(busy), kPeer)), expected) << i;
  }
  EXPECT_EQ(status(authenticator.identify(cookie(idle), kPeer)), 401);
}

TEST_F(AuthenticatorTest, logging_out_ends_the_session) {
  add("anna", "secret");
  auto authenticator = make();
  const std::string one = authenticator.log_in("secret", kPeer)->id;
  const std::string other = authenticator.log_in("secret", kPeer)->id;
  authenticator.log_out(cookie(one));
  EXPECT_EQ(status(authenticator.identify(cookie(one), kPeer)), 401);
  EXPECT_EQ(status(authenticator.identify(cookie(other), kPeer)), 200);
}

TEST_F(AuthenticatorTest, sessions_are_bounded) {
  add("anna", "secret");
  auto authenticator = make({.sessions = 3});
  std::vector<std::string> ids;
  for (int i = 0; i < 4; ++i) {
    ids.push_back(authenticator.log_in("secret", kPeer)->id);
    now_ += 1s;
  }
  EXPECT_EQ(status(authenticator.identify(cookie(ids[0]), kPeer)), 401);
  EXPECT_EQ(status(authenticator.identify(cookie(ids[1]), kPeer)), 200);
}

TEST_F(AuthenticatorTest, guesses_are_slowed_down_and_those_who_know_a_token_are_not) {
  add("anna", "secret");
  auto authenticator = make({.failures = 3});
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(status(authenticator.identify(bearer("guess"), kPeer)), 401);
  EXPECT_EQ(status(authenticator.identify(bearer("guess"), kPeer)), 429);
  EXPECT_EQ(authenticator.log_in("guess", kPeer).error().status, 429);
  EXPECT_EQ(status(authenticator.identify(bearer("secret"), kPeer)), 200);
  now_ += 1min;
  EXPECT_EQ(status(authenticator.identify(bearer("guess"), kPeer)), 401);
}

TEST(Token, has_256_bits_and_is_never_the_same) {
  const std::string one = *generate_token();
  EXPECT_EQ(one.size(), std::string("outbox_").size() + 64);
  EXPECT_NE(one, *generate_token());
}

TEST(Cookie, is_for_this_host_for_no_script_and_for_no_other_site) {
  const std::string secure = session_cookie("1", true);
  EXPECT_THAT(secure,
              HasSubstr("__Host-outbox-session=1; Path=/; HttpOnly; SameSite=Strict; Secure"));
  EXPECT_THAT(session_cookie("1", false), testing::Not(HasSubstr("Secure")));
  EXPECT_THAT(session_cookie("", true), HasSubstr("Max-Age=0"));
  EXPECT_EQ(session_in("a=1; __Host-outbox-session=2;b=3"), "2");
  EXPECT_EQ(session_in("a=1; xoutbox-session=2"), "");
  EXPECT_EQ(session_in(""), "");
  EXPECT_EQ(session_in(";;=;"), "");
}

}  // namespace
}  // namespace outbox::console
