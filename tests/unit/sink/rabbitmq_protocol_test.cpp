// The protocol of the RabbitMQ sink without a server: frames, and a connection to a plain socket.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <chrono>

#include "sink/rabbitmq/connection.hpp"
#include "sink/rabbitmq/frames.hpp"
#include "sink/rabbitmq/table.hpp"

namespace outbox::test {
namespace {

using namespace sink::rabbitmq;  // NOLINT(google-build-using-namespace)
using std::chrono::seconds;

// ---- frames

struct Read {
  /// The frames as "method 60/40 exchange key", "header 5 type", "body text", "heartbeat".
  std::vector<std::string> frames;
  bool garbage{false};
};

std::string shown(const amqp_frame_t& frame) {
  if (frame.frame_type == AMQP_FRAME_HEARTBEAT) return "heartbeat";
  if (frame.frame_type == AMQP_FRAME_BODY)
    return "body " + std::string(to_text(frame.payload.body_fragment));
  if (frame.frame_type == AMQP_FRAME_HEADER) {
    const auto& properties =
        *static_cast<const amqp_basic_properties_t*>(frame.payload.properties.decoded);
    return "header " + std::to_string(frame.payload.properties.body_size) + " " +
           std::string(to_text(properties.type));
  }
  if (frame.payload.method.id != AMQP_BASIC_PUBLISH_METHOD) return "another method";
  const auto& method = *static_cast<const amqp_basic_publish_t*>(frame.payload.method.decoded);
  return "publish " + std::string(to_text(method.exchange)) + " " +
         std::string(to_text(method.routing_key));
}

/// Reads as if `at_a_time` bytes arrived at a time.
Read read(std::string_view bytes, std::size_t at_a_time) {
  FrameReader reader;
  Read read;
  while (!bytes.empty()) {
    const std::string piece(bytes.substr(0, at_a_time));
    bytes.remove_prefix(piece.size());
    reader.feed(piece);
    amqp_frame_t frame{};
    while (true) {
      const FrameReader::Found found = reader.next(frame);
      if (found == FrameReader::Found::nothing) break;
      if (found == FrameReader::Found::garbage) {
        read.garbage = true;
        return read;
      }
      read.frames.push_back(shown(frame));
    }
  }
  return read;
}

std::string make_publication(FrameWriter& writer, std::string_view body) {
  std::string out;
  amqp_basic_publish_t method{};
  method.exchange = to_bytes("shop");
  method.routing_key = to_bytes("order.events");
  amqp_basic_properties_t properties{};
  properties.type = to_bytes("OrderPlaced");
  properties._flags = AMQP_BASIC_TYPE_FLAG;
  EXPECT_TRUE(writer.method(out, 1, AMQP_BASIC_PUBLISH_METHOD, &method));
  EXPECT_TRUE(writer.content(out, 1, properties, body));
  return out;
}

TEST(RabbitFrames, are_read_as_they_were_written_wherever_they_are_cut) {
  FrameWriter writer;
  std::string out = make_publication(writer, "one");
  FrameWriter::heartbeat(out);
  out += make_publication(writer, "");
  const std::vector<std::string> expected{
      "publish shop order.events", "header 3 OrderPlaced", "body one", "heartbeat",
      "publish shop order.events", "header 0 OrderPlaced"};
  for (std::size_t at_a_time = 1; at_a_time <= out.size(); ++at_a_time)
    EXPECT_EQ(read(out, at_a_time).frames, expected) << at_a_time;
}

TEST(RabbitFrames, a_body_is_split_into_frames_of_the_agreed_size) {
  FrameWriter writer;
  const std::size_t fits = kLeastFrame - 8;
  for (const std::size_t size : {fits - 1, fits, fits + 1, 3 * fits, 3 * fits + 1}) {
    const std::string body(size, 'x');
    const Read found = read(make_publication(writer, body), 1000);
    ASSERT_FALSE(found.garbage);
    std::string joined;
    for (std::size_t i = 2; i < found.frames.size(); ++i) {
      const std::string piece = found.frames[i].substr(5);
      EXPECT_LE(piece.size(), fits);
      joined += piece;
    }
    EXPECT_EQ(joined, body);
    EXPECT_EQ(found.frames.size(), 2 + (size + fits - 1) / fits);
  }
}

TEST(RabbitFrames, what_does_not_fit_is_not_written_at_all) {
  FrameWriter writer;
  std::string out = "before";
  amqp_basic_publish_t method{};
  const std::string long_key(256, 'x');
  method.routing_key = to_bytes(long_key);
  EXPECT_FALSE(writer.method(out, 1, AMQP_BASIC_PUBLISH_METHOD, &method));
  const std::string large(kLeastFrame, 'x');
  amqp_table_entry_t entry = make_entry("large", large);
  amqp_basic_properties_t properties{};
  properties.headers = make_table({&entry, 1});
  properties._flags = AMQP_BASIC_HEADERS_FLAG;
  EXPECT_FALSE(writer.content(out, 1, properties, "body"));
  EXPECT_EQ(out, "before");
}

TEST(RabbitFrames, another_protocol_is_garbage) {
  for (const std::string_view bytes : {std::string_view("HTTP/1.1 400 Bad Request\r\n\r\n"),
                                       std::string_view("\x15\x03\x03\x00\x02\x02\x0a......", 13),
                                       std::string_view("\x01\x00\x00\x7f\xff\xff\xff\x00", 8)})
    EXPECT_TRUE(read(bytes, bytes.size()).garbage) << bytes;
}

TEST(RabbitFrames, a_server_of_another_version_says_so) {
  FrameReader reader;
  reader.feed(std::string_view("AMQP\x00\x01\x00\x00", 8));
  amqp_frame_t frame{};
  ASSERT_EQ(reader.next(frame), FrameReader::Found::frame);
  EXPECT_EQ(frame.frame_type, 'A');
}

// ---- a connection

class RabbitConnection : public testing::Test {
 protected:
  void SetUp() override {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ASSERT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    ASSERT_EQ(::listen(listener_, 1), 0);
    const timeval limit{.tv_sec = 30, .tv_usec = 0};
    ASSERT_EQ(::setsockopt(listener_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    ASSERT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    auto opened = Connection::open({.scheme = "amqp",
                                    .username = {},
                                    .password = {},
                                    .host = "127.0.0.1",
                                    .port = ntohs(address.sin_port),
                                    .path = {}},
                                   {}, Clock::now() + seconds(60), seconds(60));
    ASSERT_TRUE(opened.has_value()) << opened.error().text();
    connection_ = std::move(*opened);
    peer_ = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    ASSERT_GE(peer_, 0);
    ASSERT_EQ(::setsockopt(peer_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  }
  void TearDown() override {
    connection_.reset();
    ::close(peer_);
    ::close(listener_);
  }

  using Clock = std::chrono::steady_clock;

  /// Sends a frame from the other end.
  void answer() const {
    std::string out;
    amqp_channel_open_ok_t method{};
    FrameWriter writer;
    ASSERT_TRUE(writer.method(out, 1, AMQP_CHANNEL_OPEN_OK_METHOD, &method));
    ASSERT_EQ(::send(peer_, out.data(), out.size(), 0), static_cast<ssize_t>(out.size()));
  }

  /// Comes to the state after a login: the server has said something, and an interval is agreed.
  void agree(seconds heartbeat) {
    answer();
    ASSERT_TRUE(connection_->wait(Clock::now() + seconds(60)));
    connection_->tune(kLeastFrame, heartbeat);
  }

  /// The bytes that the other end gets.
  [[nodiscard]] std::string received(std::size_t count) const {
    std::string bytes(count, '\0');
    const ssize_t got = ::recv(peer_, bytes.data(), count, MSG_WAITALL);
    bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return bytes;
  }

  int listener_{-1};
  int peer_{-1};
  std::unique_ptr<Connection> connection_;
};

TEST_F(RabbitConnection, a_heartbeat_is_sent_when_nothing_else_was_for_half_the_interval) {
  agree(seconds(20));
  const auto now = Clock::now();
  connection_->keep_alive(now + seconds(1));
  EXPECT_EQ(connection_->unsent(), 0U);
  connection_->keep_alive(now + seconds(11));
  ASSERT_TRUE(connection_->flush());
  EXPECT_EQ(received(8), std::string("\x08\0\0\0\0\0\0\xce", 8));
  connection_->keep_alive(now + seconds(1));
  EXPECT_EQ(connection_->unsent(), 0U);
}

TEST_F(RabbitConnection, a_server_that_is_silent_for_two_intervals_is_lost) {
  const auto now = Clock::now();
  EXPECT_TRUE(connection_->check_alive(now + seconds(3600))) << "nothing is agreed yet";
  agree(seconds(20));
  EXPECT_TRUE(connection_->check_alive(Clock::now() + seconds(20)));
  EXPECT_FALSE(connection_->check_alive(now + seconds(3600)));
}

TEST_F(RabbitConnection, frames_that_came_before_the_end_are_read) {
  answer();
  answer();
  ::shutdown(peer_, SHUT_RDWR);
  const auto until = Clock::now() + seconds(60);
  for (int i = 0; i < 2; ++i) {
    const auto frame = connection_->wait(until);
    ASSERT_TRUE(frame.has_value()) << frame.error().text();
    EXPECT_EQ((*frame)->frame_type, AMQP_FRAME_METHOD);
  }
  const auto end = connection_->wait(until);
  ASSERT_FALSE(end.has_value());
  EXPECT_NE(end.error().message.find("closed"), std::string::npos) << end.error().text();
}

TEST_F(RabbitConnection, what_does_not_fit_leaves_the_buffer_as_it_was) {
  const std::string large(kLeastFrame, 'x');
  amqp_table_entry_t entry = make_entry("large", large);
  amqp_basic_properties_t properties{};
  properties.headers = make_table({&entry, 1});
  properties._flags = AMQP_BASIC_HEADERS_FLAG;
  EXPECT_FALSE(connection_->publish({}, properties, "body"));
  EXPECT_EQ(connection_->unsent(), 0U);
  EXPECT_EQ(connection_->end(), 0U);
}

}  // namespace
}  // namespace outbox::test
