// TLS of the HTTP server, with OpenSSL, for sockets that never wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <outbox/error.hpp>
#include <span>
#include <string>
#include <string_view>

struct ssl_st;
struct ssl_ctx_st;

namespace outbox::http {

/// Files in PEM format.
struct Certificate {
  std::string chain_file;  ///< The certificate, and those that lead to a known one.
  std::string key_file;
};

/// What one call has done.
struct Moved {
  enum class Next : std::uint8_t { again, when_readable, when_writable, gone };
  std::size_t bytes{0};
  Next next{Next::again};
};

/// A connection with TLS. It borrows the socket. The handshake happens in the first calls.
class TlsStream {
 public:
  explicit TlsStream(ssl_st* session) : session_(session) {}

  [[nodiscard]] Moved read(std::span<char> into);
  [[nodiscard]] Moved write(std::string_view from);

 private:
  struct Free {
    void operator()(ssl_st* session) const;
  };
  [[nodiscard]] Moved moved(int result);

  std::unique_ptr<ssl_st, Free> session_;
};

/// TLS 1.2 and later, with a certificate that is read once.
class TlsContext {
 public:
  /// Fails if a file cannot be read, or if the key is not the one of the certificate.
  [[nodiscard]] static Result<TlsContext> open(const Certificate& certificate);

  [[nodiscard]] std::unique_ptr<TlsStream> accept(int socket) const;

 private:
  struct Free {
    void operator()(ssl_ctx_st* context) const;
  };
  explicit TlsContext(ssl_ctx_st* context) : context_(context) {}

  std::unique_ptr<ssl_ctx_st, Free> context_;
};

}  // namespace outbox::http
