// One connection to a RabbitMQ server that never blocks once it is open: frames go into a buffer
// and come out of one (frames.hpp), a ByteStream moves the bytes. Heartbeats keep it alive.
//
//   connection.send(kChannel, AMQP_CONFIRM_SELECT_METHOD, amqp_confirm_select_t{});
//   if (!connection.flush()) ...                    // what the socket takes now
//   while (auto frame = connection.next()) { if (*frame == nullptr) break; ... }
//
// Threads: One thread at a time. Another one may watch the socket.
// Lifetime: a frame is valid until the next call of next().
// Errors: an error of flush() or next() means that the connection is lost; next() first returns the
// frames that came before.
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

/// The only channel that is used. Channel 0 is the connection itself.
inline constexpr amqp_channel_t kChannel = 1;

class Connection {
 public:
  using TimePoint = ByteStream::TimePoint;

  /// Connects, by `until` at the latest; nothing of AMQP happens yet. For `silence` see ByteStream.
  [[nodiscard]] static Result<std::unique_ptr<Connection>> open(const Endpoint& endpoint,
                                                                const TlsSettings& tls,
                                                                TimePoint until,
                                                                std::chrono::milliseconds silence);

  [[nodiscard]] const std::string& address() const { return stream_->address(); }
  [[nodiscard]] int socket() const { return stream_->socket(); }

  // ---- sending, into the buffer

  /// Puts the name of the protocol before anything else.
  void greet();
  /// Puts a method that always fits; `method` is the structure of that id.
  template <class Method>
  void send(amqp_channel_t channel, amqp_method_number_t id, Method method) {
    OUTBOX_CHECK(writer_.method(stream_->queue(), channel, id, &method));
  }
  /// Returns false, and sends nothing, if the method or the properties do not fit into a frame.
  [[nodiscard]] bool publish(amqp_basic_publish_t method, amqp_basic_properties_t& properties,
                             std::string_view body);
  /// Puts a heartbeat if nothing was sent for half of the interval.
  void keep_alive(TimePoint now);

  /// Announces the end if the socket takes it now; without it the server logs a lost connection.
  void say_goodbye();

  /// Writes what the socket takes now. Returns whether the socket took any byte.
  [[nodiscard]] Result<bool> flush();
  [[nodiscard]] std::size_t unsent() const { return stream_->unsent(); }
  /// The end of the buffer, in bytes since the beginning; taken() is how much the socket has taken.
  [[nodiscard]] std::uint64_t end() const { return taken() + unsent(); }
  [[nodiscard]] std::uint64_t taken() const { return stream_->taken(); }

  // ---- receiving

  /// The next frame that has arrived; null if there is none.
  [[nodiscard]] Result<const amqp_frame_t*> next();
  /// Waits until something has arrived, or until the socket takes bytes if some are unsent. Must
  /// follow next() with no frame. Returns false when the time is over.
  [[nodiscard]] bool wait_for_socket(TimePoint until) const { return stream_->wait(until); }
  /// Waits for a frame.
  [[nodiscard]] Result<const amqp_frame_t*> wait(TimePoint until);
  /// Fails if the server has sent nothing for two intervals.
  [[nodiscard]] Status check_alive(TimePoint now) const;

  // ---- as agreed with the server

  /// Sets what was agreed by specification 4.2.3 and 4.2.7.
  void tune(std::size_t most_in_frame, std::chrono::seconds heartbeat);

  /// Says that the server will not read for a while, so that its silence is no sign of its end.
  void expect_silence(bool expected) noexcept;
  /// Makes the destructor drop what the kernel has not sent yet.
  void abort() noexcept { stream_->abort(); }
  /// The error "rabbitmq: ADDRESS: WHAT", with the hint to check the server.
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
  std::chrono::seconds heartbeat_{0};  ///< 0 until it is agreed.
  TimePoint sent_at_;
  TimePoint heard_at_;
};

}  // namespace outbox::sink::rabbitmq
