// One connection to a Redis server that never blocks once it is open: hiredis writes and parses the
// protocol (RESP2), a ByteStream moves the bytes. hiredis' own connections have TLS only since
// version 1.0, and do not check the name in the certificate before 1.4.
//
//   connection.append(arguments);          // into a buffer
//   if (!connection.flush()) ...           // what the socket takes now
//   const Status filled = connection.fill();
//   while (auto reply = connection.next()) { if (!*reply) break; ... }
//
// Threads: One thread at a time. Another one may watch the socket.
// Errors: an error of flush() or fill() means that the connection is lost; next() still returns the
// replies that came before.
#pragma once

#include <hiredis/hiredis.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <outbox/error.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/owned.hpp"
#include "sink/byte_stream.hpp"

namespace outbox::sink::hiredis {

using Reply = Owned<redisReply, freeReplyObject>;

/// The text of a string, a status or an error; empty for other replies.
[[nodiscard]] std::string_view to_text(const redisReply& reply) noexcept;

/// About as many bytes as the command has on the wire.
[[nodiscard]] std::size_t wire_bytes(std::span<const std::string_view> arguments) noexcept;

class Connection {
 public:
  using TimePoint = ByteStream::TimePoint;
  using Arguments = std::span<const std::string_view>;

  /// `options.secure` is overwritten by what the endpoint says.
  [[nodiscard]] static Result<std::unique_ptr<Connection>> open(const Endpoint& endpoint,
                                                                const TlsSettings& tls,
                                                                ByteStream::Options options);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  Connection(Connection&&) = delete;
  Connection& operator=(Connection&&) = delete;
  ~Connection() = default;

  /// The address without username and password.
  [[nodiscard]] const std::string& address() const { return stream_->address(); }
  [[nodiscard]] int socket() const { return stream_->socket(); }

  /// Puts a command into the buffer.
  void append(Arguments arguments);
  /// Writes what the socket takes now. Returns whether the socket took any byte.
  [[nodiscard]] Result<bool> flush() { return stream_->flush(); }
  /// The number of bytes that wait in the buffer.
  [[nodiscard]] std::size_t unsent() const { return stream_->unsent(); }

  /// Reads what has arrived.
  [[nodiscard]] Status fill();
  /// The next reply that was read; null if there is none. Fails on bytes that are not RESP.
  [[nodiscard]] Result<Reply> next();

  /// Sends a command and waits for its reply. Nothing else may be in flight.
  [[nodiscard]] Result<Reply> ask(Arguments command, TimePoint until);
  /// Sends what is in the buffer and waits for the reply to the oldest command. `limit` is the
  /// setting that the error names when the time is over.
  [[nodiscard]] Result<Reply> answer(TimePoint until, std::string_view limit);

  /// Makes the destructor drop what the kernel has not sent yet.
  void abort() noexcept { stream_->abort(); }

 private:
  Connection(std::string sink, std::unique_ptr<ByteStream> stream);
  [[nodiscard]] Error not_redis() const;

  const std::string sink_;
  const std::unique_ptr<ByteStream> stream_;
  Owned<redisReader, redisReaderFree> reader_;
  std::vector<const char*> starts_;
  std::vector<std::size_t> lengths_;
};

}  // namespace outbox::sink::hiredis
