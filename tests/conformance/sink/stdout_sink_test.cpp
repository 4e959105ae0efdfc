// What only the stdout sink has: a reader that goes away, and one that comes back.
#include "sink/stdout/stdout_sink.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "conformance/sink/mini_relay.hpp"

namespace outbox::test {
namespace {

class StdoutSinkTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0); }
  void TearDown() override {
    if (ends_[0] >= 0) ::close(ends_[0]);
    ::close(ends_[1]);
  }
  void reader_leaves() {
    ::close(ends_[0]);
    ends_[0] = -1;
  }
  /// A new pipe under the same number.
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
  ASSERT_EQ(relay.offer(5), 1U);
  EXPECT_EQ(relay.offer(4), 0U) << "takes more before it was opened again";
  ASSERT_TRUE(relay.drain());
  ASSERT_EQ(relay.failures().size(), 1U);
  EXPECT_EQ(relay.failures().front().outcome.kind, Outcome::Kind::blocked);
  EXPECT_NE(relay.failures().front().outcome.error.message.find("nobody reads"), std::string::npos);
  const Status status = sink.open();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::unavailable);
  reader_comes_back();
  relay.rewind();
  EXPECT_TRUE(relay.deliver());
}

TEST_F(StdoutSinkTest, a_closed_descriptor_is_an_error_of_open) {
  sink::StdoutSink sink(-1);
  EXPECT_FALSE(sink.open());
}

}  // namespace
}  // namespace outbox::test
