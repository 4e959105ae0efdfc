// A connection over TCP or TLS that never blocks once it is open: libcurl connects, checks certificates and moves the bytes. For clients
// whose library only writes and parses a protocol (hiredis, librabbitmq).
//
//   stream.queue().append(command);        // into a buffer
//   if (!stream.flush()) ...               // what the socket takes now
//   while (true) { OUTBOX_TRY(const std::string_view bytes, stream.read()); if (bytes.empty()) break; ... }
//
// Threads: One thread at a time. Another one may watch the socket.
// Errors: of flush() and read(): the connection is lost; read() still returns what came before. Their effect is unknown.
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
    /// What errors begin with, and how the settings are called in hints: "http", which has http.url and http.tls_ca.
    std::string sink;
    bool secure{false};
    TimePoint until;  ///< Connects until then at the latest.
    /// The kernel gives the connection up when the server confirms no bytes for so long.
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

  /// What is appended to it will be sent.
  [[nodiscard]] std::string& queue() { return queued_; }
  /// Writes what the socket takes now. True: it took something.
  [[nodiscard]] Result<bool> flush();
  /// Bytes in the buffer.
  [[nodiscard]] std::size_t unsent() const { return sending_.size() - sent_ + queued_.size(); }
  /// Bytes that the socket has taken so far.
  [[nodiscard]] std::uint64_t taken() const { return taken_; }

  /// What has arrived, a piece of it; empty: nothing more now. Valid until the next call.
  [[nodiscard]] Result<std::string_view> read();
  /// Until there is something to read, or to write if there is something unsent. False: the time is over.
  [[nodiscard]] bool wait(TimePoint until) const;

  /// As Options::silence. 0: as long as the system waits.
  void set_silence(std::chrono::milliseconds silence) noexcept;
  /// What the kernel has not sent yet is dropped when the connection is destroyed.
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
  /// `code`: of libcurl.
  [[nodiscard]] Error curl_failed(int code, std::string_view what) const;

  const std::string address_;
  const Options options_;
  std::array<char, 256> error_text_{};
  std::unique_ptr<void, FreeCurl> curl_;
  int socket_{-1};

  // OpenSSL wants the same bytes at the same place again after it could not write them. So what is being sent does not grow.
  std::string sending_;
  std::size_t sent_{0};
  std::string queued_;
  std::uint64_t taken_{0};
  std::vector<char> arrived_;
};

}  // namespace outbox::sink
