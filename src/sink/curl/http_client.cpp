#include "sink/curl/http_client.hpp"

#include <algorithm>

#include "sink/curl/handles.hpp"

namespace outbox::sink::curl {
namespace {

/// How much of an answer is read: enough to say why, too little to fill the memory.
constexpr std::size_t kAnswerBytes = std::size_t{64} << 10U;

/// Takes what fits. libcurl ends the transfer when less was taken than there is.
std::size_t take_answer(char* bytes, std::size_t /*one*/, std::size_t size, void* data) {
  auto& exchange = *static_cast<Exchange*>(data);
  const std::size_t taken = std::min(size, kAnswerBytes - exchange.answer.size());
  exchange.answer.append(bytes, taken);
  exchange.longer = taken < size;
  return taken;
}

long info(CURL* easy, CURLINFO which) {
  long value = 0;
  (void)curl_easy_getinfo(easy, which, &value);
  return value;
}

}  // namespace

HttpClient::HttpClient(const Options& options) : guard_(options.guard), prototype_(new_easy()) {
  CURL* const easy = prototype_.get();
  set(easy, CURLOPT_NOSIGNAL, 1L);
  set(easy, CURLOPT_PROTOCOLS_STR, options.encrypted ? "https" : "http");
  set(easy, CURLOPT_FOLLOWLOCATION, 0L);
  set(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
  // Even an empty text is set, so that no variable of the environment names a proxy.
  set(easy, CURLOPT_PROXY, options.proxy.c_str());
  set(easy, CURLOPT_NOPROXY, "");
  set(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  set(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_timeout.count()));
  // Without this, giving up a transfer waits for the resolver, whose thread cannot be interrupted.
  set(easy, CURLOPT_QUICK_EXIT, 1L);
  set(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  set(easy, CURLOPT_USERAGENT, "outbox");
  if (options.encrypted && options.http2) {
    // A libcurl without HTTP/2 refuses this and stays with 1.1.
    (void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
    // Makes a request wait to learn whether the connection that is being made can carry it too.
    set(easy, CURLOPT_PIPEWAIT, 1L);
  } else {
    set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  }
  set(easy, CURLOPT_WRITEFUNCTION, take_answer);
  set_tls(easy, options.tls);
}

Easy HttpClient::handle_for(Exchange& exchange, const std::string& url) const {
  Easy easy(curl_easy_duphandle(prototype_.get()));
  OUTBOX_CHECK(easy != nullptr);
  exchange.connect.guard = guard_;
  curl::guard(easy.get(), exchange.connect);
  set(easy.get(), CURLOPT_URL, url.c_str());
  set(easy.get(), CURLOPT_ERRORBUFFER, exchange.curl_text.data());
  set(easy.get(), CURLOPT_WRITEDATA, static_cast<void*>(&exchange));
  return easy;
}

void HttpClient::set_post(CURL* easy, const Exchange& exchange, std::string_view body) {
  set(easy, CURLOPT_POST, 1L);
  set(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  set(easy, CURLOPT_POSTFIELDS, body.data());
  set(easy, CURLOPT_HTTPHEADER, exchange.headers.get());
}

Answer HttpClient::make_answer(Exchange& exchange, CURL* easy, CURLcode code) {
  curl_off_t pause = 0;
  (void)curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &pause);
  return {.code = code,
          .status = info(easy, CURLINFO_RESPONSE_CODE),
          .proxy_status = info(easy, CURLINFO_HTTP_CONNECTCODE),
          // This counts bytes of a connection that broke before libcurl tried another one, too.
          .sent = info(easy, CURLINFO_REQUEST_SIZE) > 0,
          .longer = exchange.longer,
          .retry_after = std::chrono::seconds(pause),
          .body = std::move(exchange.answer),
          .curl_text = exchange.curl_text.data(),
          .refused = exchange.connect.refused};
}

Answer HttpClient::connect(const std::string& origin) const {
  Exchange exchange;
  const Easy easy = handle_for(exchange, origin);
  set(easy.get(), CURLOPT_CONNECT_ONLY, 1L);
  const CURLcode code = curl_easy_perform(easy.get());
  Answer answer = make_answer(exchange, easy.get(), code);
  answer.sent = false;  // At most a CONNECT to a proxy was sent.
  return answer;
}

}  // namespace outbox::sink::curl
