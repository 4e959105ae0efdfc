// Frames of AMQP 0-9-1 as bytes and back. librabbitmq encodes and decodes what is in a frame; it is not used to send, because
// amqp_basic_publish() blocks for as long as the server does not read, which a server that is low on memory does not.
//
// Lifetime: a frame from FrameReader is valid until the next call of next().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sink/rabbitmq/librabbitmq.hpp"

namespace outbox::sink::rabbitmq {

/// The least that every server takes: specification 4.2.3 and constant frame-min-size.
inline constexpr std::size_t kLeastFrame = AMQP_FRAME_MIN_SIZE;

class FrameWriter {
 public:
  /// Frames are at most so large, their 8 bytes of overhead included.
  void set_most(std::size_t bytes) { encoded_.resize(bytes); }
  [[nodiscard]] std::size_t most() const { return encoded_.size(); }

  /// `method`: the structure of that id (amqp_framing.h). False: it does not fit into a frame, or a short string in it is longer than 255
  /// bytes; then nothing is written. The same for content().
  [[nodiscard]] bool method(std::string& out, amqp_channel_t channel, amqp_method_number_t id,
                            void* method);
  /// The header and the body that follow basic.publish.
  [[nodiscard]] bool content(std::string& out, amqp_channel_t channel,
                             amqp_basic_properties_t& properties, std::string_view body);
  static void heartbeat(std::string& out);

 private:
  std::vector<char> encoded_ = std::vector<char>(kLeastFrame);
};

class FrameReader {
 public:
  FrameReader();

  /// What has arrived. It must be valid until next() has returned null.
  void feed(std::string_view bytes) { input_ = bytes; }

  enum class Found : std::uint8_t { nothing, frame, garbage };
  /// `garbage`: it is no AMQP; nothing can follow.
  [[nodiscard]] Found next(amqp_frame_t& frame);

  /// Larger ones are garbage. Only after the first frame has been read.
  void set_most(std::size_t bytes);

 private:
  struct Free {
    void operator()(amqp_connection_state_t state) const noexcept {
      amqp_destroy_connection(state);
    }
  };
  /// The parser of librabbitmq, without a socket.
  std::unique_ptr<amqp_connection_state_t_, Free> parser_;
  std::string_view input_;
};

}  // namespace outbox::sink::rabbitmq
