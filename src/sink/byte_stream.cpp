#include "sink/byte_stream.hpp"

#include <curl/curl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace outbox::sink {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr std::size_t kReadBytes = std::size_t{64} << 10U;
/// A larger buffer is freed after use: one large message must not hold its memory for good.
constexpr std::size_t kKeptBytes = std::size_t{2} << 20U;
constexpr long kKeepAliveSeconds = 30;

milliseconds left_until(ByteStream::TimePoint until) {
  const auto left = duration_cast<milliseconds>(until - std::chrono::steady_clock::now());
  return std::max(left, milliseconds(0));
}

/// A failure is harmless, because the sink watches its deadline itself.
void set_user_timeout(int socket, milliseconds silence) {
  const auto limit = static_cast<unsigned>(silence.count());
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit);
}

int set_up_socket(void* silence, curl_socket_t socket, curlsocktype /*purpose*/) {
  set_user_timeout(socket, *static_cast<const milliseconds*>(silence));
  (void)::fcntl(socket, F_SETFD, FD_CLOEXEC);
  return CURL_SOCKOPT_OK;
}

bool is_about_certificates(CURLcode code) {
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CONNECT_ERROR ||
         code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CACERT_BADFILE ||
         code == CURLE_SSL_ISSUER_ERROR || code == CURLE_SSL_CIPHER;
}

}  // namespace

void ByteStream::FreeCurl::operator()(void* curl) const noexcept { curl_easy_cleanup(curl); }

ByteStream::ByteStream(std::string address, Options options)
    : address_(std::move(address)), options_(std::move(options)), curl_(curl_easy_init()) {
  static_assert(std::tuple_size_v<decltype(error_text_)> >= CURL_ERROR_SIZE);
  OUTBOX_CHECK(curl_);  // This fails only for lack of memory.
}

Result<std::unique_ptr<ByteStream>> ByteStream::open(const Endpoint& endpoint,
                                                     const TlsSettings& tls, Options options) {
  static const CURLcode initialized = curl_global_init(CURL_GLOBAL_DEFAULT);
  OUTBOX_CHECK(initialized == CURLE_OK);
  std::unique_ptr<ByteStream> made(new ByteStream(endpoint.shown(), std::move(options)));
  OUTBOX_TRY(made->connect(endpoint, tls));
  return made;
}

void ByteStream::set_up(const Endpoint& endpoint, const TlsSettings& tls) {
  CURL* const curl = curl_.get();
  const auto set = [curl](CURLoption option, auto value) {
    OUTBOX_CHECK(curl_easy_setopt(curl, option, value) == CURLE_OK);
  };
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  // The scheme only says whether there is TLS: with CONNECT_ONLY no byte of HTTP is sent.
  const std::string url = fmt::format("{}://{}{}{}:{}", options_.secure ? "https" : "http",
                                      v6 ? "[" : "", endpoint.host, v6 ? "]" : "", endpoint.port);
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_CONNECT_ONLY, 1L);
  set(CURLOPT_ERRORBUFFER, error_text_.data());
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_PROXY, "");  // The variable http_proxy is not meant for this.
  // A limit of 0 would mean curl's own limit.
  const milliseconds limit = std::max(left_until(options_.until), milliseconds(1));
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(limit.count()));
  set(CURLOPT_TCP_NODELAY, 1L);
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_TCP_KEEPIDLE, kKeepAliveSeconds);
  set(CURLOPT_TCP_KEEPINTVL, kKeepAliveSeconds);
  if (!options_.secure) return;
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  set(CURLOPT_SSL_ENABLE_ALPN, 0L);  // ALPN would offer HTTP.
  set(CURLOPT_SSL_VERIFYPEER, tls.insecure ? 0L : 1L);
  set(CURLOPT_SSL_VERIFYHOST, tls.insecure ? 0L : 2L);
  if (!tls.ca.empty()) set(CURLOPT_CAINFO, tls.ca.c_str());
  if (!tls.certificate.empty()) set(CURLOPT_SSLCERT, tls.certificate.c_str());
  if (!tls.key.empty()) set(CURLOPT_SSLKEY, tls.key.c_str());
}

Status ByteStream::connect(const Endpoint& endpoint, const TlsSettings& tls) {
  set_up(endpoint, tls);
  milliseconds silence = options_.silence;
  curl_easy_setopt(curl_.get(), CURLOPT_SOCKOPTFUNCTION, set_up_socket);
  curl_easy_setopt(curl_.get(), CURLOPT_SOCKOPTDATA, &silence);
  const CURLcode code = curl_easy_perform(curl_.get());
  curl_easy_setopt(curl_.get(), CURLOPT_SOCKOPTDATA, nullptr);
  if (code != CURLE_OK) {
    Error error = curl_failed(code, "cannot connect");
    error.effect = Effect::none;
    if (is_about_certificates(code)) {
      error.code = Errc::permission_denied;
      error.remedy = Remedy::fix;
      error.hint = fmt::format(
          "check that the server speaks TLS on this port, {}.tls_ca, and the names in its certificate",
          options_.sink);
    } else if (code == CURLE_OPERATION_TIMEDOUT && options_.secure) {
      error.hint.append("; does it speak TLS on this port?");
    }
    return fail(std::move(error));
  }
  curl_socket_t socket = CURL_SOCKET_BAD;
  if (curl_easy_getinfo(curl_.get(), CURLINFO_ACTIVESOCKET, &socket) != CURLE_OK ||
      socket == CURL_SOCKET_BAD)
    return fail(curl_failed(CURLE_COULDNT_CONNECT, "cannot connect"));
  socket_ = socket;
  error_text_[0] = '\0';  // An earlier address may have left one.
  arrived_.resize(kReadBytes);
  return {};
}

Error ByteStream::failed(Errc code, std::string_view what) const {
  return {
      .code = code,
      .remedy = Remedy::reconnect,
      .effect = Effect::unknown,
      .message = fmt::format("{}: {}: {}", options_.sink, address_, what),
      .hint = fmt::format(
          "check {}.url, the network, and that the server runs; events wait and nothing is lost",
          options_.sink),
      .origin = {}};
}

Error ByteStream::curl_failed(int code, std::string_view what) const {
  const std::string_view why =
      error_text_[0] != '\0' ? error_text_.data() : curl_easy_strerror(static_cast<CURLcode>(code));
  Error error = failed(Errc::unavailable, fmt::format("{}: {}", what, why));
  error.origin = fmt::format("curl:{}", code);
  return error;
}

Result<bool> ByteStream::flush() {
  bool any = false;
  while (true) {
    if (sent_ == sending_.size()) {
      if (sending_.capacity() > kKeptBytes) std::string().swap(sending_);
      sending_.clear();
      sent_ = 0;
      if (queued_.empty()) return any;
      sending_.swap(queued_);
    }
    std::size_t count = 0;
    const CURLcode code =
        curl_easy_send(curl_.get(), sending_.data() + sent_, sending_.size() - sent_, &count);
    if (code == CURLE_AGAIN) return any;
    if (code != CURLE_OK) return fail(curl_failed(code, "the connection is lost"));
    sent_ += count;
    taken_ += count;
    any = true;
  }
}

Result<std::string_view> ByteStream::read() {
  std::size_t count = 0;
  const CURLcode code = curl_easy_recv(curl_.get(), arrived_.data(), arrived_.size(), &count);
  if (code == CURLE_AGAIN) return std::string_view();
  if (code != CURLE_OK) return fail(curl_failed(code, "the connection is lost"));
  if (count == 0) return fail(failed(Errc::unavailable, "the server closed the connection"));
  return std::string_view(arrived_.data(), count);
}

bool ByteStream::wait(TimePoint until) const {
  const milliseconds left = left_until(until);
  if (left.count() == 0) return false;
  pollfd watched{.fd = socket_,
                 .events = static_cast<short>(unsent() > 0 ? POLLIN | POLLOUT : POLLIN),
                 .revents = 0};
  (void)::poll(&watched, 1, static_cast<int>(left.count()));
  return true;
}

void ByteStream::set_silence(milliseconds silence) noexcept { set_user_timeout(socket_, silence); }

void ByteStream::abort() noexcept {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  (void)::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

}  // namespace outbox::sink
