// A connection over TCP or TLS that never blocks once it is open: libcurl connects, checks
// certificates and moves the bytes. It is for clients whose library only writes and parses a
// protocol (hiredis, librabbitmq).
//
//   stream.queue().append(command);        // into a buffer
//   if (!stream.flush()) ...               // what the socket takes now
//   OUTBOX_TRY(const std::string_view bytes, stream.read());  // empty when nothing is there
//
// Threads: One thread at a time. Another one may watch the socket.
// Errors: an error of flush() or read() means that the connection is lost, with an unknown effect.
//         read() still returns what had arrived before.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <outbox/error.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sink/endpoint.hpp"
#include "sink/tls_settings.hpp"

namespace outbox::sink {

class ByteStream {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Options {
    /// The sink's name, which errors begin with and which prefixes settings in hints: "http" has
    /// http.url and http.tls_ca.
    std::string sink;
    bool secure{false};
    TimePoint until;  ///< The deadline for connecting.
    /// The kernel gives the connection up when the server confirms no bytes for this long.
    std::chrono::milliseconds silence{};
  };
  [[nodiscard]] static Result<std::unique_ptr<ByteStream>> open(const Endpoint& endpoint,
                                                                const TlsSettings& tls,
                                                                Options options);
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;
  ByteStream(ByteStream&&) = delete;
  ByteStream& operator=(ByteStream&&) = delete;
  ~ByteStream() = default;

  /// The address without username and password.
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] int socket() const { return socket_; }

  /// The buffer of bytes to send.
  [[nodiscard]] std::string& queue() { return queued_; }
  /// Writes what the socket takes now. Returns whether the socket took any byte.
  [[nodiscard]] Result<bool> flush();
  /// The number of bytes that wait in the buffer.
  [[nodiscard]] std::size_t unsent() const { return sending_.size() - sent_ + queued_.size(); }
  /// The number of bytes that the socket has taken so far.
  [[nodiscard]] std::uint64_t taken() const { return taken_; }

  /// A piece of what has arrived; empty if nothing more is there now. Valid until the next call.
  [[nodiscard]] Result<std::string_view> read();
  /// Waits until there is something to read, or until the socket takes bytes if some are unsent.
  /// Returns false when the time is over.
  [[nodiscard]] bool wait(TimePoint until) const;

  /// Changes Options::silence. With 0 the limit of the system applies.
  void set_silence(std::chrono::milliseconds silence) noexcept;
  /// Makes the destructor drop what the kernel has not sent yet.
  void abort() noexcept;

  /// "SINK: ADDRESS: WHAT", with the hint to check the server.
  [[nodiscard]] Error failed(Errc code, std::string_view what) const;

 private:
  struct FreeCurl {
    void operator()(void* curl) const noexcept;
  };

  ByteStream(std::string address, Options options);
  [[nodiscard]] Status connect(const Endpoint& endpoint, const TlsSettings& tls);
  void set_up(const Endpoint& endpoint, const TlsSettings& tls);
  /// `code` is a CURLcode.
  [[nodiscard]] Error curl_failed(int code, std::string_view what) const;

  const std::string address_;
  const Options options_;
  std::array<char, 256> error_text_{};
  std::unique_ptr<void, FreeCurl> curl_;
  int socket_{-1};

  // OpenSSL must be given the same bytes at the same place again after a write that would block, so
  // the buffer that is being sent does not grow.
  std::string sending_;
  std::size_t sent_{0};
  std::string queued_;
  std::uint64_t taken_{0};
  std::vector<char> arrived_;
};

}  // namespace outbox::sink
