#include "sink/curl/handles.hpp"

namespace outbox::sink::curl {

void set_text(CURL* easy, CURLoption option, const std::string& text) {
  if (!text.empty()) set(easy, option, text.c_str());
}

void set_tls(CURL* easy, const TlsSettings& tls) {
  set(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  set(easy, CURLOPT_SSL_VERIFYPEER, tls.insecure ? 0L : 1L);
  set(easy, CURLOPT_SSL_VERIFYHOST, tls.insecure ? 0L : 2L);
  set_text(easy, CURLOPT_CAINFO, tls.ca);
  set_text(easy, CURLOPT_SSLCERT, tls.certificate);
  set_text(easy, CURLOPT_SSLKEY, tls.key);
}

}  // namespace outbox::sink::curl
