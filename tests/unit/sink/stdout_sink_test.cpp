// What is special about the stdout sink: a reader that exits, and one that returns.
#include "sink/stdout/stdout_sink.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <thread>

#include "conformance/sink/suite.hpp"
#include "sink/json_line.hpp"

namespace outbox::test {
namespace {

class StdoutSinkTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0); }
  void TearDown() override {
    if (ends_[0] >= 0) ::close(ends_[0]);
    if (ends_[1] >= 0) ::close(ends_[1]);
  }
  void reader_leaves() {
    ::close(ends_[0]);
    ends_[0] = -1;
  }
  /// Makes a new pipe under the same number.
  void reader_comes_back() {
    std::array<int, 2> fresh{};
    ASSERT_EQ(::pipe2(fresh.data(), O_CLOEXEC), 0);
    ends_[0] = fresh[0];
    ASSERT_EQ(::dup2(fresh[1], ends_[1]), ends_[1]);
    ::close(fresh[1]);
  }

  std::array<int, 2> ends_{-1, -1};
};

TEST_F(StdoutSinkTest, a_reader_that_left_blocks_and_does_not_end_the_process) {
  Load load;
  load.add_many(10, 2);
  sink::StdoutSink sink(ends_[1]);
  MiniRelay relay(sink, load);
  ASSERT_TRUE(sink.open());
  ASSERT_EQ(relay.offer(5), 5U);
  reader_leaves();
  ASSERT_EQ(relay.offer(3), 3U);
  EXPECT_EQ(relay.offer(2), 0U) << "takes more before it was opened again";
  ASSERT_TRUE(relay.drain());
  ASSERT_EQ(relay.failures().size(), 3U);
  EXPECT_EQ(relay.failures().back().outcome.kind, Outcome::Kind::retry);
  EXPECT_EQ(relay.failures().front().outcome.kind, Outcome::Kind::blocked);
  EXPECT_NE(relay.failures().front().outcome.error.message.find("its reader has exited"),
            std::string::npos);
  const Status status = sink.open();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::unavailable);
  reader_comes_back();
  relay.rewind();
  EXPECT_TRUE(relay.deliver());
}

TEST_F(StdoutSinkTest, a_reader_that_stands_still_holds_up_no_call) {
  Load load;
  load.add_many(20000, 2);
  sink::StdoutSink sink(ends_[1]);
  MiniRelay relay(sink, load);
  ASSERT_TRUE(sink.open());
  relay.offer_all();  // A sink that blocks would never return.
  EXPECT_GT(relay.in_flight(), 0U);
  EXPECT_LT(relay.acked() + relay.in_flight(), load.size());
  sink.purge();
  relay.receive();
  EXPECT_EQ(relay.in_flight(), 0U);
  ASSERT_FALSE(relay.failures().empty());
  EXPECT_EQ(relay.failures().front().outcome.kind, Outcome::Kind::unknown);
}

TEST_F(StdoutSinkTest, what_a_slow_reader_gets_is_whole_and_in_order) {
  Load load;
  load.add_many(5000, 2);
  sink::StdoutSink sink(ends_[1]);
  std::string text;
  std::jthread reader([&, from = ends_[0]] {
    std::array<char, 3000> piece{};  // The reader's pieces differ from those that are written.
    for (ssize_t got = 0; (got = ::read(from, piece.data(), piece.size())) > 0;)
      text.append(piece.data(), static_cast<std::size_t>(got));
  });
  {
    MiniRelay relay(sink, load);
    EXPECT_TRUE(relay.deliver());
    EXPECT_TRUE(relay.failures().empty());
  }
  ::close(ends_[1]);
  ends_[1] = -1;
  reader.join();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5000);
  std::string expected;
  for (std::size_t place = 0; place < load.size(); ++place)
    sink::append_json_line(expected, load.message(place, place + 1));
  EXPECT_EQ(text, expected);
}

TEST_F(StdoutSinkTest, a_closed_descriptor_is_an_error_of_open) {
  sink::StdoutSink sink(-1);
  EXPECT_FALSE(sink.open());
}

}  // namespace
}  // namespace outbox::test
