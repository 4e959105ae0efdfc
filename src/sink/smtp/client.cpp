#include "sink/smtp/client.hpp"

#include <algorithm>
#include <charconv>

#include "sink/curl/handles.hpp"

namespace outbox::sink::smtp {
namespace {

using curl::set;
using curl::set_text;

int follow(CURL* /*easy*/, curl_infotype type, char* text, std::size_t size, void* data) {
  auto& exchange = *static_cast<Exchange*>(data);
  if (type == CURLINFO_HEADER_OUT) exchange.dialogue.sent({text, size});
  if (type == CURLINFO_HEADER_IN) exchange.dialogue.received({text, size});
  // Without this libcurl would wait for the answer, and so would the mail's outcome.
  if (type == CURLINFO_HEADER_OUT && exchange.dialogue.over()) exchange.sockets->stop_reading();
  return 0;
}

std::size_t read_mail(char* to, std::size_t one, std::size_t most, void* data) {
  auto& exchange = *static_cast<Exchange*>(data);
  const std::string& text = exchange.mail.text;
  const std::size_t size = std::min(one * most, text.size() - exchange.read);
  (void)text.copy(to, size, exchange.read);
  exchange.read += size;
  return size;
}

/// Ignores what a server answers to a mail, which libcurl takes for content.
std::size_t ignore(char* /*bytes*/, std::size_t one, std::size_t size, void* /*data*/) {
  return one * size;
}

std::string in_brackets(const std::string& address) { return "<" + address + ">"; }

long whole_seconds(std::chrono::milliseconds time) {
  return static_cast<long>(std::chrono::ceil<std::chrono::seconds>(time).count());
}

}  // namespace

Client::Client(const SmtpOptions& options) : options_(options), prototype_(curl::new_easy()) {
  CURL* const easy = prototype_.get();
  const SmtpSettings& plain = options.plain;
  set(easy, CURLOPT_NOSIGNAL, 1L);
  set(easy, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
  // Even an empty text is set, so that no variable of the environment names a proxy.
  set(easy, CURLOPT_PROXY, "");
  set(easy, CURLOPT_NOPROXY, "");
  // Without this, giving up a transfer waits for the resolver, whose thread cannot be interrupted.
  set(easy, CURLOPT_QUICK_EXIT, 1L);
  set(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(plain.connect_timeout.count()));
  set(easy, CURLOPT_WRITEFUNCTION, ignore);
  // This is the only way to see the answers; libcurl prints nothing if there is a function for it.
  set(easy, CURLOPT_VERBOSE, 1L);
  set(easy, CURLOPT_DEBUGFUNCTION, follow);
  set_server();
}

void Client::set_server() {
  CURL* const easy = prototype_.get();
  const SmtpSettings& plain = options_.plain;
  const std::string url = options_.server_name + "/" + plain.hello;
  set(easy, CURLOPT_URL, url.c_str());
  set(easy, CURLOPT_USE_SSL,
      static_cast<long>(plain.encrypted() ? CURLUSESSL_ALL : CURLUSESSL_NONE));
  curl::set_tls(easy, plain.tls);
  set_text(easy, CURLOPT_USERNAME, options_.server.username);
  set_text(easy, CURLOPT_PASSWORD, options_.server.password);
}

curl::Easy Client::handle_for(Exchange& exchange, curl::Sockets& sockets) const {
  curl::Easy easy(curl_easy_duphandle(prototype_.get()));
  OUTBOX_CHECK(easy != nullptr);
  exchange.dialogue = {};
  exchange.sockets = &sockets;
  exchange.curl_text.fill('\0');
  sockets.watch(easy.get());
  set(easy.get(), CURLOPT_DEBUGDATA, static_cast<void*>(&exchange));
  set(easy.get(), CURLOPT_ERRORBUFFER, exchange.curl_text.data());
  return easy;
}

curl::Easy Client::prepare(Exchange& exchange, curl::Sockets& sockets) const {
  curl::Easy easy = handle_for(exchange, sockets);
  const Mail& mail = exchange.mail;
  exchange.read = 0;
  exchange.recipients.reset();
  for (const std::string& address : mail.recipients)
    curl::append(exchange.recipients, in_brackets(address).c_str());
  set(easy.get(), CURLOPT_MAIL_FROM, in_brackets(options_.from.address).c_str());
  set(easy.get(), CURLOPT_MAIL_RCPT, exchange.recipients.get());
  set(easy.get(), CURLOPT_UPLOAD, 1L);
  set(easy.get(), CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(mail.text.size()));
  set(easy.get(), CURLOPT_READFUNCTION, read_mail);
  set(easy.get(), CURLOPT_READDATA, static_cast<void*>(&exchange));
  // By default libcurl waits 2 minutes for an answer.
  set(easy.get(), CURLOPT_SERVER_RESPONSE_TIMEOUT, whole_seconds(options_.plain.deadline));
  set(easy.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(options_.plain.deadline.count()));
  set(easy.get(), CURLOPT_FRESH_CONNECT, exchange.fresh ? 1L : 0L);
  return easy;
}

Ending Client::make_ending(const Exchange& exchange, CURL* easy, CURLcode code) {
  curl_off_t sent = 0;
  long made = 0;
  (void)curl_easy_getinfo(easy, CURLINFO_SIZE_UPLOAD_T, &sent);
  (void)curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &made);
  const auto size = exchange.mail.text.size();
  return {.code = code,
          .stage = exchange.dialogue.stage(),
          .reply = exchange.dialogue.code(),
          .reply_text = exchange.dialogue.text(),
          .recipient = exchange.dialogue.recipient(),
          .whole = exchange.read >= size && sent >= static_cast<curl_off_t>(size),
          .reused = made == 0,
          .curl_text = exchange.curl_text.data()};
}

Client::Greeting Client::greet() const {
  Exchange exchange;
  curl::Sockets sockets;
  const curl::Easy easy = handle_for(exchange, sockets);
  // CURLOPT_CONNECT_ONLY would end without QUIT, which servers log as a fault.
  set(easy.get(), CURLOPT_CUSTOMREQUEST, "NOOP");
  set(easy.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(options_.plain.connect_timeout.count()));
  const CURLcode code = curl_easy_perform(easy.get());
  Greeting greeting{.ending = make_ending(exchange, easy.get(), code),
                    .login = exchange.dialogue.offers("AUTH"),
                    .utf8 = exchange.dialogue.offers("SMTPUTF8")};
  const std::string_view size = exchange.dialogue.parameters("SIZE");
  (void)std::from_chars(size.data(), size.data() + size.size(), greeting.most_bytes);
  sockets.stop_reading();  // QUIT is sent when the handle is destroyed.
  return greeting;
}

}  // namespace outbox::sink::smtp
