// The server of the console, with verbs that the test plays.
#include "console/console.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <future>
#include <thread>

#include "http/address.hpp"

namespace outbox::console {
namespace {

using testing::HasSubstr;

struct Asked {
  int status{0};
  std::string body{};
};

Asked get(const Console& console, const std::string& path) {
  httplib::Client client("127.0.0.1", console.address().port);
  client.set_read_timeout(60);
  const auto answer = client.Get(path.c_str());
  return answer ? Asked{.status = answer->status, .body = answer->body} : Asked{};
}

std::unique_ptr<Console> start(std::function<Outcome(const std::vector<std::string>&)> verb) {
  auto console =
      Console::start({.address = *http::parse_address("127.0.0.1:0"),
                      .version = "1",
                      .store = "sqlite:shop.db",
                      .execute = [verb = std::move(verb)](const auto& words, const auto&) {
                        return verb(words);
                      }});
  EXPECT_TRUE(console) << console.error().text();
  return std::move(*console);
}

TEST(ConsoleServer, a_store_that_hangs_keeps_one_thread_however_many_look) {
  std::promise<void> hangs;
  std::promise<void> release;
  std::atomic<int> looks{0};
  const auto released = release.get_future().share();
  const auto console = start([&](const auto&) {
    if (++looks > 1) {
      hangs.set_value();
      released.wait();
    }
    return Outcome{.output = "{\"look\": 1}\n"};
  });
  ASSERT_THAT(get(*console, "/api/v1/live").body, HasSubstr("look"));
  std::jthread waits;
  // What was seen is shown for a second; then somebody looks again, and waits.
  waits = std::jthread([&] {
    while (looks < 2) (void)get(*console, "/api/v1/live");
  });
  hangs.get_future().wait();
  for (int asked = 0; asked < 20; ++asked)
    EXPECT_THAT(get(*console, "/api/v1/live").body, HasSubstr("look"));
  EXPECT_EQ(get(*console, "/api/v1/session").status, 200);
  release.set_value();
}

TEST(ConsoleServer, other_machines_are_not_answered) {
  auto console = Console::start({.address = *http::parse_address("0.0.0.0:0")});
  ASSERT_FALSE(console);
  EXPECT_THAT(console.error().text(), HasSubstr("other machines"));
}

TEST(ConsoleServer, without_a_token_it_does_not_start_where_it_asks_for_one) {
  auto console = Console::start({.address = *http::parse_address("127.0.0.1:0"),
                                 .asks_for_tokens = true,
                                 .read_tokens = [] { return std::vector<KnownToken>(); }});
  ASSERT_FALSE(console);
  EXPECT_THAT(console.error().text(), HasSubstr("token add"));
}

}  // namespace
}  // namespace outbox::console
