#include "http/tls.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <utility>

#include "base/error.hpp"

namespace outbox::http {
namespace {

tl::unexpected<Error> cannot_use(const std::string& what, std::string hint) {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return fail(
      Errc::invalid_argument, Remedy::fix,
      "cannot use " + what + ": " + (reason != nullptr ? reason : "OpenSSL does not say why"),
      std::move(hint));
}

}  // namespace

void TlsStream::Free::operator()(ssl_st* session) const { SSL_free(session); }
void TlsContext::Free::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }

Moved TlsStream::read(std::span<char> into) {
  ERR_clear_error();
  return moved(SSL_read(session_.get(), into.data(), static_cast<int>(into.size())));
}

Moved TlsStream::write(std::string_view from) {
  ERR_clear_error();
  constexpr std::size_t kMost = std::size_t{1} << 20U;
  return moved(
      SSL_write(session_.get(), from.data(), static_cast<int>(from.substr(0, kMost).size())));
}

Moved TlsStream::moved(int result) {
  if (result > 0) return {.bytes = static_cast<std::size_t>(result)};
  switch (SSL_get_error(session_.get(), result)) {
    case SSL_ERROR_WANT_READ: return {.next = Moved::Next::when_readable};
    case SSL_ERROR_WANT_WRITE: return {.next = Moved::Next::when_writable};
    default: ERR_clear_error(); return {.next = Moved::Next::gone};
  }
}

Result<TlsContext> TlsContext::open(const Certificate& certificate) {
  ERR_clear_error();
  TlsContext made(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* const context = made.context_.get();
  if (context == nullptr) return cannot_use("OpenSSL", "is there memory left?");
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  // A response is moved on when a part of it was written, so it may stand elsewhere then.
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  // A client that asks for new keys again and again would cost more than it pays.
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  if (SSL_CTX_use_certificate_chain_file(context, certificate.chain_file.c_str()) != 1)
    return cannot_use("the certificate " + certificate.chain_file,
                      "a file in PEM format: the certificate first, then those that signed it");
  if (SSL_CTX_use_PrivateKey_file(context, certificate.key_file.c_str(), SSL_FILETYPE_PEM) != 1)
    return cannot_use("the key " + certificate.key_file,
                      "a file in PEM format, with the key of the certificate, without a password");
  return made;
}

std::unique_ptr<TlsStream> TlsContext::accept(int socket) const {
  SSL* const session = SSL_new(context_.get());
  if (session == nullptr) return nullptr;
  auto stream = std::make_unique<TlsStream>(session);
  if (SSL_set_fd(session, socket) != 1) return nullptr;
  SSL_set_accept_state(session);
  return stream;
}

}  // namespace outbox::http
