// Frames of AMQP 0-9-1 as bytes and back. librabbitmq encodes and decodes what is in a frame. It is
// not used to send, because amqp_basic_publish() blocks while the server does not read, as a server
// that is low on memory does.
//
// Lifetime: a frame from FrameReader is valid until the next call of next().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/owned.hpp"
#include "sink/rabbitmq/librabbitmq.hpp"

namespace outbox::sink::rabbitmq {

/// The largest frame that every server takes: specification 4.2.3 and constant frame-min-size.
inline constexpr std::size_t kLeastFrame = AMQP_FRAME_MIN_SIZE;

class FrameWriter {
 public:
  /// Sets the size of the largest frame, with its 8 bytes of overhead.
  void set_most(std::size_t bytes) { encoded_.resize(bytes); }
  [[nodiscard]] std::size_t most() const { return encoded_.size(); }

  /// Writes a method; `method` is the structure of that id (amqp_framing.h). Returns false, and
  /// writes nothing, if it does not fit into a frame or has a short string of more than 255 bytes.
  /// content() does the same.
  [[nodiscard]] bool method(std::string& out, amqp_channel_t channel, amqp_method_number_t id,
                            void* method);
  /// Writes the header and the body that follow basic.publish.
  [[nodiscard]] bool content(std::string& out, amqp_channel_t channel,
                             amqp_basic_properties_t& properties, std::string_view body);
  static void heartbeat(std::string& out);

 private:
  std::vector<char> encoded_ = std::vector<char>(kLeastFrame);
};

class FrameReader {
 public:
  FrameReader();

  /// Takes what has arrived. The bytes must be valid until next() has returned `nothing`.
  void feed(std::string_view bytes) { input_ = bytes; }

  enum class Found : std::uint8_t { nothing, frame, garbage };
  /// Returns `garbage` for bytes that are not AMQP; nothing can follow them.
  [[nodiscard]] Found next(amqp_frame_t& frame);

  /// Sets the size beyond which frames are garbage. Allowed only after the first frame was read.
  void set_most(std::size_t bytes);

 private:
  /// The parser of librabbitmq, without a socket.
  Owned<amqp_connection_state_t_, amqp_destroy_connection> parser_;
  std::string_view input_;
};

}  // namespace outbox::sink::rabbitmq
