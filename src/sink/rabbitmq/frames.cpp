#include "sink/rabbitmq/frames.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "sink/rabbitmq/table.hpp"

namespace outbox::sink::rabbitmq {
namespace {

// The bytes of type, channel and size, and of the end mark (specification 4.2.3).
constexpr std::size_t kOverhead = 8;

template <class Number>
void append_number(std::string& out, Number number) {
  for (std::size_t i = sizeof number; i-- > 0;)
    out.push_back(static_cast<char>(static_cast<unsigned char>(number >> (8 * i))));
}

void begin_frame(std::string& out, std::uint8_t type, amqp_channel_t channel, std::size_t payload) {
  append_number(out, type);
  append_number(out, channel);
  append_number(out, static_cast<std::uint32_t>(payload));
}

void end_frame(std::string& out) { out.push_back(static_cast<char>(AMQP_FRAME_END)); }

}  // namespace

bool FrameWriter::method(std::string& out, amqp_channel_t channel, amqp_method_number_t id,
                         void* method) {
  const std::size_t most = encoded_.size() - kOverhead - sizeof id;
  const int size = amqp_encode_method(id, method, {.len = most, .bytes = encoded_.data()});
  if (size < 0) return false;
  begin_frame(out, AMQP_FRAME_METHOD, channel, static_cast<std::size_t>(size) + sizeof id);
  append_number(out, id);
  out.append(encoded_.data(), static_cast<std::size_t>(size));
  end_frame(out);
  return true;
}

/// Writes the frames of specification 4.2.6.
bool FrameWriter::content(std::string& out, amqp_channel_t channel,
                          amqp_basic_properties_t& properties, std::string_view body) {
  constexpr std::uint16_t kClass = AMQP_BASIC_CLASS;
  constexpr std::uint16_t kWeight = 0;
  const std::uint64_t body_size = body.size();
  constexpr std::size_t kFixed = sizeof kClass + sizeof kWeight + sizeof body_size;
  const int size = amqp_encode_properties(
      kClass, &properties, {.len = encoded_.size() - kOverhead - kFixed, .bytes = encoded_.data()});
  if (size < 0) return false;
  begin_frame(out, AMQP_FRAME_HEADER, channel, kFixed + static_cast<std::size_t>(size));
  append_number(out, kClass);
  append_number(out, kWeight);
  append_number(out, body_size);
  out.append(encoded_.data(), static_cast<std::size_t>(size));
  end_frame(out);
  const std::size_t most = encoded_.size() - kOverhead;
  for (; !body.empty(); body.remove_prefix(std::min(most, body.size()))) {
    const std::string_view piece = body.substr(0, most);
    begin_frame(out, AMQP_FRAME_BODY, channel, piece.size());
    out.append(piece);
    end_frame(out);
  }
  return true;
}

void FrameWriter::heartbeat(std::string& out) {
  begin_frame(out, AMQP_FRAME_HEARTBEAT, 0, 0);
  end_frame(out);
}

FrameReader::FrameReader() : parser_(amqp_new_connection()) {
  OUTBOX_CHECK(parser_);  // This fails only for lack of memory.
}

FrameReader::Found FrameReader::next(amqp_frame_t& frame) {
  // Frees the memory of the previous frame.
  amqp_maybe_release_buffers(parser_.get());
  while (!input_.empty()) {
    const int used = amqp_handle_input(parser_.get(), to_bytes(input_), &frame);
    if (used < 0) return Found::garbage;
    input_.remove_prefix(static_cast<std::size_t>(used));
    if (frame.frame_type != 0) return Found::frame;
  }
  return Found::nothing;
}

void FrameReader::set_most(std::size_t bytes) {
  const int done = amqp_tune_connection(parser_.get(), 0, static_cast<int>(bytes), 0);
  OUTBOX_CHECK(done == AMQP_STATUS_OK);  // This fails only for lack of memory.
}

}  // namespace outbox::sink::rabbitmq
