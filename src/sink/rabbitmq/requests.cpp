#include "sink/rabbitmq/requests.hpp"

#include "base/error.hpp"
#include "sink/rabbitmq/error_map.hpp"
#include "sink/rabbitmq/table.hpp"

namespace outbox::sink::rabbitmq {
namespace {

/// A server that does not speak our version answers with the version that it speaks (specification 4.2.2). librabbitmq's parser has this type
/// of frame for it, the first letter of "AMQP".
bool is_other_version(const amqp_frame_t& frame) { return frame.frame_type == 'A'; }

}  // namespace

Result<const void*> Requests::await(amqp_channel_t channel, amqp_method_number_t id,
                                    Describe describe) {
  while (true) {
    OUTBOX_TRY(const amqp_frame_t* frame, connection_.wait(until_));
    if (is_other_version(*frame))
      return fail(connection_.failed(Errc::unsupported, "does not speak AMQP 0-9-1"));
    if (frame->frame_type != AMQP_FRAME_METHOD) continue;
    const amqp_method_t& method = frame->payload.method;
    if (frame->channel == channel && method.id == id) return method.decoded;
    if (method.id == AMQP_CONNECTION_CLOSE_METHOD) {
      const auto& close = *static_cast<const amqp_connection_close_t*>(method.decoded);
      Error error = describe(close.reply_code, text_of(close.reply_text), connection_.address());
      connection_.send(0, AMQP_CONNECTION_CLOSE_OK_METHOD, amqp_connection_close_ok_t{});
      (void)connection_.flush();
      return fail(std::move(error));
    }
    if (method.id == AMQP_CHANNEL_CLOSE_METHOD) {
      const auto& close = *static_cast<const amqp_channel_close_t*>(method.decoded);
      return fail(describe(close.reply_code, text_of(close.reply_text), connection_.address()));
    }
  }
}

Status Requests::await_answer(amqp_method_number_t id) {
  OUTBOX_TRY(const void* answer, await(kChannel, id, describe));
  (void)answer;
  return {};
}

Status Requests::open_channel() {
  return call(AMQP_CHANNEL_OPEN_METHOD, amqp_channel_open_t{}, AMQP_CHANNEL_OPEN_OK_METHOD);
}

Status Requests::confirm_messages() {
  return call(AMQP_CONFIRM_SELECT_METHOD, amqp_confirm_select_t{}, AMQP_CONFIRM_SELECT_OK_METHOD);
}

}  // namespace outbox::sink::rabbitmq
