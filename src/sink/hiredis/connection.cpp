#include "sink/hiredis/connection.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/error.hpp"

namespace outbox::sink::hiredis {

std::string_view to_text(const redisReply& reply) noexcept {
  const bool has_text = reply.type == REDIS_REPLY_STRING || reply.type == REDIS_REPLY_STATUS ||
                        reply.type == REDIS_REPLY_ERROR;
  return has_text ? std::string_view(reply.str, reply.len) : std::string_view();
}

std::size_t wire_bytes(std::span<const std::string_view> arguments) noexcept {
  // The bytes of "$123456789\r
  // " and "\r
  // ".
  constexpr std::size_t kOverhead = 14;
  std::size_t bytes = 0;
  for (const std::string_view argument : arguments) bytes += argument.size() + kOverhead;
  return bytes;
}

Connection::Connection(std::string sink, std::unique_ptr<ByteStream> stream)
    : sink_(std::move(sink)), stream_(std::move(stream)), reader_(redisReaderCreate()) {
  OUTBOX_CHECK(reader_);  // This fails only for lack of memory.
}

Result<std::unique_ptr<Connection>> Connection::open(const Endpoint& endpoint,
                                                     const TlsSettings& tls,
                                                     ByteStream::Options options) {
  options.secure = endpoint.scheme == "rediss";
  OUTBOX_TRY(auto stream, ByteStream::open(endpoint, tls, options));
  return std::unique_ptr<Connection>(new Connection(std::move(options.sink), std::move(stream)));
}

void Connection::append(Arguments arguments) {
  starts_.clear();
  lengths_.clear();
  for (const std::string_view argument : arguments) {
    starts_.push_back(argument.empty() ? "" : argument.data());
    lengths_.push_back(argument.size());
  }
  char* command = nullptr;
  const auto size = redisFormatCommandArgv(&command, static_cast<int>(starts_.size()),
                                           starts_.data(), lengths_.data());
  OUTBOX_CHECK(size > 0);  // This fails only for lack of memory.
  stream_->queue().append(command, static_cast<std::size_t>(size));
  redisFreeCommand(command);
}

Status Connection::fill() {
  while (true) {
    OUTBOX_TRY(const std::string_view bytes, stream_->read());
    if (bytes.empty()) return {};
    if (redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) != REDIS_OK)
      return fail(not_redis());
  }
}

Result<Reply> Connection::next() {
  void* reply = nullptr;
  if (redisReaderGetReply(reader_.get(), &reply) == REDIS_OK)
    return Reply(static_cast<redisReply*>(reply));
  return fail(not_redis());
}

Error Connection::not_redis() const {
  Error error = stream_->failed(
      Errc::unavailable, fmt::format("does not speak the protocol of Redis: {}", reader_->errstr));
  error.hint = fmt::format(
      "check {}.url: is another server behind this port, or one with TLS (rediss://)?", sink_);
  return error;
}

Result<Reply> Connection::ask(Arguments command, TimePoint until) {
  append(command);
  return answer(until, "connect_timeout");
}

Result<Reply> Connection::answer(TimePoint until, std::string_view limit) {
  while (true) {
    const Result<bool> flushed = flush();
    const Status filled = fill();
    OUTBOX_TRY(Reply reply, next());
    if (reply) return reply;
    if (!filled) return tl::unexpected(filled.error());
    if (!flushed) return tl::unexpected(flushed.error());
    if (!stream_->wait(until))
      return fail(stream_->failed(Errc::deadline_exceeded,
                                  fmt::format("no answer within {}.{}", sink_, limit)));
  }
}

}  // namespace outbox::sink::hiredis
