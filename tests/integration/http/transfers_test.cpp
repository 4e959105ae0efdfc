// Tests the thread that runs transfers.
#include "sink/curl/transfers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "conformance/sink/http_server.hpp"
#include "support/eventually.hpp"

namespace outbox::test {
namespace {

using namespace std::chrono_literals;
using sink::curl::Easy;
using sink::curl::new_easy;
using sink::curl::Transfers;

std::size_t ignore(char* /*bytes*/, std::size_t one, std::size_t size, void* /*data*/) {
  return one * size;
}

class TransfersThread : public testing::Test {
 protected:
  [[nodiscard]] std::unique_ptr<Transfers> start(const Transfers::Options& options) {
    auto started = Transfers::start(options, [this] { ++rings_; });
    EXPECT_TRUE(started) << started.error().text();
    return std::move(*started);
  }
  [[nodiscard]] Easy post(const std::string& path) const {
    Easy easy = new_easy();
    sink::curl::set(easy.get(), CURLOPT_URL, (server_.origin() + path).c_str());
    sink::curl::set(easy.get(), CURLOPT_COPYPOSTFIELDS, "x");
    sink::curl::set(easy.get(), CURLOPT_WRITEFUNCTION, ignore);
    return easy;
  }
  static Transfers::TimePoint in(std::chrono::milliseconds time) {
    return std::chrono::steady_clock::now() + time;
  }
  /// Waits until so many transfers are done.
  static std::vector<Transfers::Done> wait_for(Transfers& transfers, std::size_t count) {
    std::vector<Transfers::Done> all;
    EXPECT_TRUE(eventually([&] {
      for (auto& done : transfers.take_done()) all.push_back(std::move(done));
      return all.size() >= count;
    }));
    return all;
  }

  HttpServer server_;
  std::atomic<int> rings_{0};
};

TEST_F(TransfersThread, returns_each_handle_with_its_ticket_and_result) {
  const auto transfers = start({.capacity = 3});
  ASSERT_TRUE(transfers->submit(7, post("/"), in(20s)));
  ASSERT_TRUE(transfers->submit(8, post("/status/404"), in(20s)));
  ASSERT_TRUE(transfers->submit(9, post("/close"), in(20s)));
  auto all = wait_for(*transfers, 3);
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.ticket < b.ticket; });
  long status = 0;
  curl_easy_getinfo(all[1].easy.get(), CURLINFO_RESPONSE_CODE, &status);
  EXPECT_EQ(all[0].ticket, 7U);
  EXPECT_EQ(all[0].code, CURLE_OK);
  EXPECT_EQ(status, 404);
  EXPECT_EQ(all[2].code, CURLE_GOT_NOTHING);
  EXPECT_GT(rings_, 0);
  EXPECT_TRUE(transfers->take_done().empty());
}

TEST_F(TransfersThread, takes_as_many_as_its_capacity_until_they_are_fetched) {
  const auto transfers = start({.capacity = 2});
  ASSERT_TRUE(transfers->submit(1, post("/"), in(20s)));
  ASSERT_TRUE(transfers->submit(2, post("/"), in(20s)));
  ASSERT_TRUE(eventually([&] { return server_.received().size() == 2; }));
  Easy third = post("/");
  EXPECT_FALSE(transfers->submit(3, std::move(third), in(20s)));
  EXPECT_NE(third, nullptr) << "it was taken";
  (void)wait_for(*transfers, 2);
  EXPECT_TRUE(transfers->submit(3, std::move(third), in(20s)));
  (void)wait_for(*transfers, 1);
}

TEST_F(TransfersThread, a_deadline_ends_those_that_wait_for_a_connection_too) {
  const auto transfers = start({.capacity = 3, .per_host = 1});
  const auto until = in(500ms);
  for (Transfers::Ticket ticket = 1; ticket <= 3; ++ticket)
    ASSERT_TRUE(transfers->submit(ticket, post("/hang"), until));
  for (const auto& done : wait_for(*transfers, 3)) EXPECT_EQ(done.code, CURLE_OPERATION_TIMEDOUT);
  EXPECT_LE(server_.received().size(), 1U) << "one connection to a host";
}

TEST_F(TransfersThread, cancelling_ends_all_at_once) {
  const auto transfers = start({.capacity = 3});
  for (Transfers::Ticket ticket = 1; ticket <= 3; ++ticket)
    ASSERT_TRUE(transfers->submit(ticket, post("/hang"), in(1h)));
  ASSERT_TRUE(eventually([&] { return server_.received().size() == 3; }));
  transfers->cancel_all();
  const auto all = transfers->take_done();
  ASSERT_EQ(all.size(), 3U) << "they are done when it returns";
  for (const auto& done : all) EXPECT_EQ(done.code, CURLE_ABORTED_BY_CALLBACK);
  transfers->cancel_all();
  ASSERT_TRUE(transfers->submit(4, post("/"), in(20s))) << "and it goes on";
  EXPECT_EQ(wait_for(*transfers, 1)[0].code, CURLE_OK);
}

TEST_F(TransfersThread, what_was_cancelled_at_once_was_not_sent_or_is_not_known) {
  const auto transfers = start({.capacity = 100});
  for (Transfers::Ticket ticket = 0; ticket < 100; ++ticket)
    ASSERT_TRUE(transfers->submit(ticket, post("/"), in(1h)));
  transfers->cancel_all();
  std::size_t unsent = 0;
  for (const auto& done : transfers->take_done()) {
    long sent = 0;
    curl_easy_getinfo(done.easy.get(), CURLINFO_REQUEST_SIZE, &sent);
    if (sent == 0) ++unsent;
  }
  EXPECT_LE(server_.received().size() + unsent, 100U);
}

TEST_F(TransfersThread, can_be_destroyed_while_they_run) {
  auto transfers = start({.capacity = 3});
  for (Transfers::Ticket ticket = 1; ticket <= 3; ++ticket)
    ASSERT_TRUE(transfers->submit(ticket, post("/hang"), in(1h)));
  ASSERT_TRUE(eventually([&] { return server_.received().size() == 3; }));
  transfers.reset();
}

}  // namespace
}  // namespace outbox::test
