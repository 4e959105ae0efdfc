#include "sink/redis/connection.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace outbox::sink::redis {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr std::size_t kReadBytes = std::size_t{64} << 10U;
/// One large message must not hold its memory for good.
constexpr std::size_t kKeptBytes = std::size_t{2} << 20U;
constexpr long kKeepAliveSeconds = 30;

constexpr const char* kReach =
    "check redis.url, the network, and that the server runs; events wait and nothing is lost";

constexpr const char* kCertificates =
    "check that the server speaks TLS on this port, redis.tls_ca, and the names in its certificate";

milliseconds left_until(Connection::TimePoint until) {
  const auto left = duration_cast<milliseconds>(until - std::chrono::steady_clock::now());
  return std::max(left, milliseconds(0));
}

int set_up_socket(void* silence, curl_socket_t socket, curlsocktype /*purpose*/) {
  const auto limit = static_cast<unsigned>(static_cast<const milliseconds*>(silence)->count());
  // Both only help: receive() watches the deadline itself.
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit);
  (void)::fcntl(socket, F_SETFD, FD_CLOEXEC);
  return CURL_SOCKOPT_OK;
}

bool is_about_certificates(CURLcode code) {
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CONNECT_ERROR ||
         code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CACERT_BADFILE ||
         code == CURLE_SSL_ISSUER_ERROR || code == CURLE_SSL_CIPHER;
}

}  // namespace

std::string_view text_of(const redisReply& reply) noexcept {
  const bool has_text = reply.type == REDIS_REPLY_STRING || reply.type == REDIS_REPLY_STATUS ||
                        reply.type == REDIS_REPLY_ERROR;
  return has_text ? std::string_view(reply.str, reply.len) : std::string_view();
}

Connection::Connection(std::string address)
    : address_(std::move(address)), curl_(curl_easy_init()), reader_(redisReaderCreate()) {
  OUTBOX_CHECK(curl_ && reader_);  // out of memory
}

Result<std::unique_ptr<Connection>> Connection::open(const Endpoint& endpoint, const Tls& tls,
                                                     TimePoint until, milliseconds silence) {
  static const CURLcode initialized = curl_global_init(CURL_GLOBAL_DEFAULT);
  OUTBOX_CHECK(initialized == CURLE_OK);
  std::unique_ptr<Connection> made(new Connection(endpoint.shown()));
  // 0 would mean curl's own limit.
  const milliseconds limit = std::max(left_until(until), milliseconds(1));
  if (Status connected = made->connect(endpoint, tls, limit, silence); !connected)
    return pass(connected);
  return made;
}

void Connection::set_up(const Endpoint& endpoint, const Tls& tls, milliseconds limit) {
  CURL* const curl = curl_.get();
  const auto set = [curl](CURLoption option, auto value) {
    OUTBOX_CHECK(curl_easy_setopt(curl, option, value) == CURLE_OK);
  };
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  const bool secure = endpoint.scheme == "rediss";
  // The scheme only says whether there is TLS: with CONNECT_ONLY no byte of HTTP is sent.
  const std::string url = fmt::format("{}://{}{}{}:{}", secure ? "https" : "http", v6 ? "[" : "",
                                      endpoint.host, v6 ? "]" : "", endpoint.port);
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_CONNECT_ONLY, 1L);
  set(CURLOPT_ERRORBUFFER, error_text_);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_PROXY, "");  // http_proxy is not meant for this
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(limit.count()));
  set(CURLOPT_TCP_NODELAY, 1L);
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_TCP_KEEPIDLE, kKeepAliveSeconds);
  set(CURLOPT_TCP_KEEPINTVL, kKeepAliveSeconds);
  if (!secure) return;
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  set(CURLOPT_SSL_ENABLE_ALPN, 0L);  // it would offer HTTP
  set(CURLOPT_SSL_VERIFYPEER, tls.insecure ? 0L : 1L);
  set(CURLOPT_SSL_VERIFYHOST, tls.insecure ? 0L : 2L);
  if (!tls.ca.empty()) set(CURLOPT_CAINFO, tls.ca.c_str());
  if (!tls.certificate.empty()) set(CURLOPT_SSLCERT, tls.certificate.c_str());
  if (!tls.key.empty()) set(CURLOPT_SSLKEY, tls.key.c_str());
}

Status Connection::connect(const Endpoint& endpoint, const Tls& tls, milliseconds limit,
                           milliseconds silence) {
  set_up(endpoint, tls, limit);
  curl_easy_setopt(curl_.get(), CURLOPT_SOCKOPTFUNCTION, set_up_socket);
  curl_easy_setopt(curl_.get(), CURLOPT_SOCKOPTDATA, &silence);
  const CURLcode code = curl_easy_perform(curl_.get());
  curl_easy_setopt(curl_.get(), CURLOPT_SOCKOPTDATA, nullptr);
  if (code != CURLE_OK) {
    Error error = failed(code, "cannot connect");
    error.effect = Effect::none;
    if (is_about_certificates(code)) {
      error.code = Errc::permission_denied;
      error.remedy = Remedy::fix;
      error.hint = kCertificates;
    } else if (code == CURLE_OPERATION_TIMEDOUT && endpoint.scheme == "rediss") {
      error.hint.append("; does it speak TLS on this port?");
    }
    return fail(std::move(error));
  }
  curl_socket_t socket = CURL_SOCKET_BAD;
  if (curl_easy_getinfo(curl_.get(), CURLINFO_ACTIVESOCKET, &socket) != CURLE_OK ||
      socket == CURL_SOCKET_BAD)
    return fail(failed(CURLE_COULDNT_CONNECT, "cannot connect"));
  socket_ = socket;
  error_text_[0] = '\0';  // of an address that was tried before
  arrived_.resize(kReadBytes);
  return {};
}

Error Connection::failed(CURLcode code, std::string_view what) const {
  const std::string_view why = error_text_[0] != '\0' ? error_text_ : curl_easy_strerror(code);
  return {.code = Errc::unavailable,
          .remedy = Remedy::reconnect,
          .effect = Effect::unknown,
          .message = fmt::format("redis: {}: {}: {}", address_, what, why),
          .hint = kReach,
          .origin = fmt::format("curl:{}", static_cast<int>(code))};
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
  OUTBOX_CHECK(size > 0);  // out of memory
  queued_.append(command, static_cast<std::size_t>(size));
  redisFreeCommand(command);
}

Result<bool> Connection::flush() {
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
    if (code != CURLE_OK) return fail(failed(code, "the connection is lost"));
    sent_ += count;
    any = true;
  }
}

Status Connection::fill() {
  while (true) {
    std::size_t count = 0;
    const CURLcode code = curl_easy_recv(curl_.get(), arrived_.data(), arrived_.size(), &count);
    if (code == CURLE_AGAIN) return {};
    if (code != CURLE_OK) return fail(failed(code, "the connection is lost"));
    if (count == 0) {
      Error error = failed(CURLE_RECV_ERROR, "the connection is lost");
      error.message = fmt::format("redis: {}: the server closed the connection", address_);
      return fail(std::move(error));
    }
    if (redisReaderFeed(reader_.get(), arrived_.data(), count) != REDIS_OK)
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
  Error error = failed(CURLE_WEIRD_SERVER_REPLY, "does not speak the protocol of Redis");
  error.message =
      fmt::format("redis: {}: does not speak the protocol of Redis: {}", address_, reader_->errstr);
  error.hint = "check redis.url: is another server behind this port, or one with TLS (rediss://)?";
  return error;
}

bool Connection::wait(TimePoint until) const {
  const milliseconds left = left_until(until);
  if (left.count() == 0) return false;
  pollfd watched{.fd = socket_,
                 .events = static_cast<short>(unsent() > 0 ? POLLIN | POLLOUT : POLLIN),
                 .revents = 0};
  (void)::poll(&watched, 1, static_cast<int>(left.count()));
  return true;
}

Result<Reply> Connection::ask(Arguments command, TimePoint until) {
  append(command);
  while (true) {
    const Result<bool> flushed = flush();
    const Status filled = fill();
    OUTBOX_TRY(Reply reply, next());
    if (reply) return reply;
    if (!filled) return tl::unexpected(filled.error());
    if (!flushed) return tl::unexpected(flushed.error());
    if (!wait(until)) {
      Error error = failed(CURLE_OPERATION_TIMEDOUT, "no answer");
      error.code = Errc::deadline_exceeded;
      error.message = fmt::format("redis: {}: no answer within redis.connect_timeout", address_);
      return fail(std::move(error));
    }
  }
}

void Connection::abort() noexcept {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  (void)::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

}  // namespace outbox::sink::redis
