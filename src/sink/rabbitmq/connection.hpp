// One connection to a RabbitMQ server that never blocks once it is open: frames go into a buffer and come out of one (frames.hpp), a
// ByteStream moves the bytes. It keeps the connection alive with heartbeats.
//
//   connection.send(kChannel, AMQP_CONFIRM_SELECT_METHOD, amqp_confirm_select_t{});
//   if (!connection.flush()) ...                    // what the socket takes now
//   while (auto frame = connection.next()) { if (*frame == nullptr) break; ... }
//
// Threads: One thread at a time. Another one may watch the socket.
// Lifetime: a frame is valid until the next call of next().
// Errors: of flush() and next(): the connection is lost; next() returns the frames that came before first.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <outbox/error.hpp>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "sink/byte_stream.hpp"
#include "sink/rabbitmq/frames.hpp"

namespace outbox::sink::rabbitmq {

/// The only one that is used. Channel 0 is the connection itself.
inline constexpr amqp_channel_t kChannel = 1;

class Connection {
 public:
  using TimePoint = ByteStream::TimePoint;

  /// Connects until then at the latest; nothing of AMQP happens yet. For `silence` see ByteStream.
  [[nodiscard]] static Result<std::unique_ptr<Connection>> open(const Endpoint& endpoint,
                                                                const TlsSettings& tls,
                                                                TimePoint until,
                                                                std::chrono::milliseconds silence);

  [[nodiscard]] const std::string& address() const { return stream_->address(); }
  [[nodiscard]] int socket() const { return stream_->socket(); }

  // ---- sending, into the buffer

  /// The name of the protocol, before anything else.
  void greet();
  /// For methods that always fit: `method` is the structure of that id.
  template <class Method>
  void send(amqp_channel_t channel, amqp_method_number_t id, Method method) {
    OUTBOX_CHECK(writer_.method(stream_->queue(), channel, id, &method));
  }
  /// False: method or properties do not fit into a frame; nothing is sent.
  [[nodiscard]] bool publish(amqp_basic_publish_t method, amqp_basic_properties_t& properties,
                             std::string_view body);
  /// A heartbeat, if nothing was sent for half of the interval.
  void keep_alive(TimePoint now);

  /// Announces the end, if the socket takes it now: otherwise the server logs a connection that was lost.
  void say_goodbye();

  /// Writes what the socket takes now. True: it took something.
  [[nodiscard]] Result<bool> flush();
  [[nodiscard]] std::size_t unsent() const { return stream_->unsent(); }
  /// Where the buffer ends and how much of it the socket has taken, in bytes since the beginning.
  [[nodiscard]] std::uint64_t end() const { return taken() + unsent(); }
  [[nodiscard]] std::uint64_t taken() const { return stream_->taken(); }

  // ---- receiving

  /// The next frame that has arrived; null: there is none.
  [[nodiscard]] Result<const amqp_frame_t*> next();
  /// Waits for a frame.
  [[nodiscard]] Result<const amqp_frame_t*> wait(TimePoint until);
  /// Fails when the server has sent nothing for two intervals.
  [[nodiscard]] Status check_alive(TimePoint now) const;

  // ---- as agreed with the server

  /// Specification 4.2.3 and 4.2.7.
  void tune(std::size_t most_in_frame, std::chrono::seconds heartbeat);

  /// The server says that it will not read for a while: then silence does not mean that it is gone.
  void expect_silence(bool expected) noexcept;
  /// What the kernel has not sent yet is dropped when the connection is destroyed.
  void abort() noexcept { stream_->abort(); }
  /// "rabbitmq: ADDRESS: WHAT", with the hint to check the server.
  [[nodiscard]] Error failed(Errc code, std::string_view what) const {
    return stream_->failed(code, what);
  }

 private:
  Connection(std::unique_ptr<ByteStream> stream, std::chrono::milliseconds silence);

  const std::unique_ptr<ByteStream> stream_;
  const std::chrono::milliseconds silence_;
  FrameWriter writer_;
  FrameReader reader_;
  amqp_frame_t frame_{};
  std::chrono::seconds heartbeat_{0};  ///< 0: not agreed yet.
  TimePoint sent_at_;
  TimePoint heard_at_;
};

}  // namespace outbox::sink::rabbitmq
