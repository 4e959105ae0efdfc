#include "sink/rabbitmq/connection.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/steady.hpp"

namespace outbox::sink::rabbitmq {

Connection::Connection(std::unique_ptr<ByteStream> stream, std::chrono::milliseconds silence)
    : stream_(std::move(stream)), silence_(silence), sent_at_(now_steady()), heard_at_(sent_at_) {}

Result<std::unique_ptr<Connection>> Connection::open(const Endpoint& endpoint,
                                                     const TlsSettings& tls, TimePoint until,
                                                     std::chrono::milliseconds silence) {
  OUTBOX_TRY(auto stream, ByteStream::open(endpoint, tls,
                                           {.sink = "rabbitmq",
                                            .secure = endpoint.scheme == "amqps",
                                            .until = until,
                                            .silence = silence}));
  return std::unique_ptr<Connection>(new Connection(std::move(stream), silence));
}

/// Begins the protocol (specification 4.2.2).
void Connection::greet() {
  constexpr char kHeader[] = {'A', 'M', 'Q', 'P', 0, 0, 9, 1};
  stream_->queue().append(kHeader, sizeof kHeader);
}

bool Connection::publish(amqp_basic_publish_t method, amqp_basic_properties_t& properties,
                         std::string_view body) {
  std::string& out = stream_->queue();
  const std::size_t before = out.size();
  if (writer_.method(out, kChannel, AMQP_BASIC_PUBLISH_METHOD, &method) &&
      writer_.content(out, kChannel, properties, body))
    return true;
  out.resize(before);
  return false;
}

void Connection::keep_alive(TimePoint now) {
  if (heartbeat_.count() == 0 || unsent() > 0 || now - sent_at_ < heartbeat_ / 2) return;
  FrameWriter::heartbeat(stream_->queue());
}

void Connection::say_goodbye() {
  send(0, AMQP_CONNECTION_CLOSE_METHOD,
       amqp_connection_close_t{
           .reply_code = AMQP_REPLY_SUCCESS, .reply_text = {}, .class_id = 0, .method_id = 0});
  (void)flush();
}

Result<bool> Connection::flush() {
  Result<bool> wrote = stream_->flush();
  if (wrote && *wrote) sent_at_ = now_steady();
  return wrote;
}

Result<const amqp_frame_t*> Connection::next() {
  while (true) {
    switch (reader_.next(frame_)) {
      case FrameReader::Found::frame: return &frame_;
      case FrameReader::Found::garbage: {
        Error error = failed(Errc::unavailable, "does not speak AMQP 0-9-1");
        error.hint =
            "check rabbitmq.url: is another server behind this port, or one with TLS (amqps://)?";
        return fail(std::move(error));
      }
      case FrameReader::Found::nothing: break;
    }
    OUTBOX_TRY(const std::string_view bytes, stream_->read());
    if (bytes.empty()) return nullptr;
    heard_at_ = now_steady();
    reader_.feed(bytes);
  }
}

Result<const amqp_frame_t*> Connection::wait(TimePoint until) {
  while (true) {
    const Result<bool> flushed = flush();
    OUTBOX_TRY(const amqp_frame_t* frame, next());
    if (frame != nullptr) return frame;
    if (!flushed) return tl::unexpected(flushed.error());
    if (!stream_->wait(until))
      return fail(failed(Errc::deadline_exceeded, "no answer within rabbitmq.connect_timeout"));
  }
}

Status Connection::check_alive(TimePoint now) const {
  if (heartbeat_.count() == 0 || now - heard_at_ <= 2 * heartbeat_) return {};
  return fail(failed(
      Errc::unavailable,
      fmt::format("the server has sent nothing for {} s, not even a heartbeat",
                  std::chrono::duration_cast<std::chrono::seconds>(now - heard_at_).count())));
}

void Connection::tune(std::size_t most_in_frame, std::chrono::seconds heartbeat) {
  writer_.set_most(most_in_frame);
  reader_.set_most(most_in_frame);
  heartbeat_ = heartbeat;
}

void Connection::expect_silence(bool expected) noexcept {
  stream_->set_silence(expected ? std::chrono::milliseconds(0) : silence_);
}

}  // namespace outbox::sink::rabbitmq
