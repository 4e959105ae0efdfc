// Tests what is shown of a store's URL, and which URLs are refused. A password is never shown,
// however it is spelled.
#include "store/url.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "store/store.hpp"
#include "support/random.hpp"

namespace outbox::store {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// The letters of secrets. None of them occurs in the rest of an address.
constexpr std::string_view kLetters = "QXZJKVW";
constexpr std::string_view kSpecial = "@/?:%#&=+ '\\\"$!,;[]~\t";
constexpr std::string_view kHex = "0123456789abcdefABCDEF";

char pick(test::Random& random, std::string_view from) {
  return from[static_cast<std::size_t>(random.below(from.size()))];
}

std::string make_secret(test::Random& random) {
  std::string secret;
  while (secret.size() < 12) {
    for (int i = 0; i < 4; ++i) secret += pick(random, kLetters);
    if (random.chance(60)) secret += pick(random, kSpecial);
  }
  return secret;
}

std::string in_percents(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::string("%") + kHex[byte >> 4U] + kHex[byte & 15U];
}

/// Percent-encodes special characters always, and other characters now and then.
std::string encoded(test::Random& random, std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = kSpecial.find(c) == std::string_view::npos && !random.chance(20);
    out += plain ? std::string(1, c) : in_percents(c);
  }
  return out;
}

std::string escaped(test::Random& random, std::string_view text) {
  const bool quotes = random.chance(50);
  std::string out;
  for (const char c : text) {
    const bool must = c == '\\' || c == '\'' || (!quotes && (c == ' ' || c == '\t'));
    if (must || random.chance(20)) out += '\\';
    out += c;
  }
  return quotes ? "'" + out + "'" : out;
}

std::string blanks(test::Random& random) { return std::string(random.below(3), ' '); }

/// A URL with this secret. If `raw` is true, the secret is not encoded, although it must be.
std::string url_with(test::Random& random, const std::string& secret, bool raw) {
  const std::string text = raw ? secret : encoded(random, secret);
  const std::string scheme = random.chance(50) ? "postgresql://" : "postgres://";
  const std::string place = "127.0.0.1:1/shop";
  const std::string more = random.chance(50) ? "sslmode=disable&" : "";
  switch (random.below(4)) {
    case 0: return scheme + "app:" + text + "@" + place;
    case 1: return scheme + ":" + text + "@" + place + "?connect_timeout=2";
    case 2: return scheme + "app@" + place + "?" + more + encoded(random, "password") + "=" + text;
    default:
      return scheme + "app@" + place + "?" + more + encoded(random, "sslpassword") + "=" + text;
  }
}

std::string parameters_with(test::Random& random, const std::string& secret) {
  std::vector<std::string> parts{"host=127.0.0.1", "port=1", "user=app", "dbname='shop'"};
  const std::string name = random.chance(80) ? "password" : "sslpassword";
  parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(random.below(parts.size() + 1)),
               name + blanks(random) + "=" + blanks(random) + escaped(random, secret));
  std::string text;
  for (const auto& part : parts) text += (text.empty() ? "" : " " + blanks(random)) + part;
  return text;
}

/// Expects that `shown` has no three letters in a row of the secret, which is more than chance.
void expect_nothing_of(const std::string& secret, const std::string& shown, const std::string& of) {
  for (std::size_t at = 0; at + 3 <= secret.size(); ++at) {
    const std::string part = secret.substr(at, 3);
    if (part.find_first_not_of(kLetters) != std::string::npos) continue;
    EXPECT_THAT(shown, Not(HasSubstr(part))) << of;
  }
}

/// Expects that the program keeps the secret in all that it prints about the URL: the URL as shown,
/// the reason for a refusal, and the error of connecting.
void expect_secret(const std::string& secret, const std::string& url) {
  expect_nothing_of(secret, shown_url(url), url);
  const Status checked = check_url(url);
  if (!checked) expect_nothing_of(secret, checked.error().text(), url);
  auto store = open_store({.url = url});
  if (!store) return expect_nothing_of(secret, store.error().text(), url);
  const Status reached = (*store)->check();
  ASSERT_FALSE(reached) << url;
  expect_nothing_of(secret, reached.error().text(), url);
}

TEST(StoreUrl, a_password_is_never_shown_however_it_is_spelled) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Random random(seed);
    const std::string secret = make_secret(random);
    expect_secret(secret, url_with(random, secret, false));
    expect_secret(secret, url_with(random, secret, true));
    expect_secret(secret, parameters_with(random, secret));
    if (HasFailure()) return;
  }
}

TEST(StoreUrl, one_that_is_spelled_right_is_understood) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Random random(seed);
    const std::string secret = make_secret(random);
    for (const auto& url : {url_with(random, secret, false), parameters_with(random, secret)}) {
      const Status checked = check_url(url);
      ASSERT_TRUE(checked) << url << " " << checked.error().text();
      ASSERT_THAT(shown_url(url), HasSubstr("127.0.0.1")) << url;
    }
  }
}

TEST(StoreUrl, what_is_shown) {
  const std::vector<std::pair<const char*, const char*>> cases{
      {"postgresql://app:hush@db:5432/shop", "postgresql://app:***@db:5432/shop"},
      {"postgresql://app:hush@db/shop?sslpassword=hush&sslmode=require",
       "postgresql://app:***@db/shop?sslmode=require&sslpassword=***"},
      {"host=db password=a\\ b user=app", "postgresql://app:***@db"},
      {"postgresql://db/shop?pass%77ord=hush", "postgresql://:***@db/shop"},
      {"postgresql:///shop?host=/var/run", "postgresql:///shop?host=/var/run"},
      {"postgresql://a:1,[::1]:2/shop", "postgresql://a:1,[::1]:2/shop"},
      {"host=a,b port=1 dbname=shop", "postgresql://a:1,b:1/shop"},
      {"host=a user='x:hush'", "postgresql://***@a"},
      {"host=a options='-c search_path=x'", "postgresql://a?options=***"},
      {"sqlite:/var/lib/shop.db", "sqlite:/var/lib/shop.db"},
      {"shop.db", "shop.db"},
      {"postgresql://app:hu@sh@db/x", "(a URL that is not understood)"}};
  for (const auto& [url, shown] : cases) EXPECT_EQ(shown_url(url), shown) << url;
}

TEST(StoreUrl, what_is_refused_and_what_to_do) {
  struct Case {
    const char* url;
    const char* what;
    const char* hint;
  };
  const std::vector<Case> cases{
      {"", "is empty", "postgresql://USER@HOST/DATABASE, or sqlite:PATH"},
      {"shop", "is not a URL of PostgreSQL or SQLite", "sqlite:PATH"},
      {"mysql://root:hush@db/shop", "is not a URL of PostgreSQL or SQLite", "postgresql://USER"},
      {"postgre://db/shop", "is not a URL", "did you mean postgresql://...?"},
      {"postgresql://db/shop?sslmod=require", "has a parameter that libpq does not know",
       "did you mean sslmode?"},
      {"host=db usr=hush", "has a parameter that libpq does not know", "did you mean user?"},
      {"postgresql://db/shop?bogus=hush", "has a parameter that libpq does not know",
       "leave it out"},
      {"postgresql://db:hush/shop", "has a port that is not a number", "percent-encode"},
      {"postgresql://db:99999/shop", "has a port that is not a number", "percent-encode"},
      {"host=a,b,c port=1,2", "does not have as many ports as hosts", "one port for all"},
      {"postgresql://db/shop?sslmode=hush", "has an unknown sslmode", "verify-full"},
      {"postgresql://db/shop?connect_timeout=hush",
       "has a connect_timeout that is not a whole number", "connect_timeout=10"},
      {"host=db password='hush", "is not what libpq takes", "write postgresql://"},
      {"postgresql://app:hu%sh@db/x", "has a % that is not followed", "percent-encode"},
      {"postgresql://app:12?x=hush@db/x", "has an @, a / or a ? in its password", "%3F for ?"},
      {"sqlite:", "has no path", "sqlite:PATH"},
      {"sqlite://shop.db", "names a host", "sqlite:PATH"},
      {"sqlite:~/shop.db", "begins with ~", "${env:HOME}"},
      {"sqlite::memory:", "is a SQLite database in memory", "name a file"}};
  for (const auto& [url, what, hint] : cases) {
    const Status checked = check_url(url);
    ASSERT_FALSE(checked) << url;
    EXPECT_THAT(checked.error().message, HasSubstr(what)) << url;
    EXPECT_THAT(checked.error().hint, HasSubstr(hint)) << url;
    EXPECT_THAT(checked.error().text(), Not(HasSubstr("hush"))) << url;
  }
}

TEST(StoreUrl, kinds) {
  for (const char* url : {"sqlite:x", "sqlite:///x", "shop.db", "./shop.sqlite", "/a/shop.sqlite3"})
    EXPECT_EQ(store_kind(url), StoreKind::sqlite) << url;
  for (const char* url : {"", ".db", "shop", "mysql://a/b.db"})
    EXPECT_EQ(store_kind(url), StoreKind::unknown) << url;
  for (const char* url : {"postgresql://localhost/shop.db", "dbname=shop.db", "postgres://"})
    EXPECT_EQ(store_kind(url), StoreKind::postgres) << url;
}

}  // namespace
}  // namespace outbox::store
