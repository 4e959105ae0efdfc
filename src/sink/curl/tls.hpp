// TLS for transfers of libcurl.
#pragma once

#include <string>

#include "sink/curl/handles.hpp"

namespace outbox::sink::curl {

struct Tls {
  const std::string& ca;           ///< Empty: the system's.
  const std::string& certificate;  ///< Of the client; empty: none.
  const std::string& key;
  bool insecure{false};  ///< The server's certificate is not checked.
};

void set_tls(CURL* easy, const Tls& tls);
/// Nothing when the text is empty.
void set_text(CURL* easy, CURLoption option, const std::string& text);

}  // namespace outbox::sink::curl
