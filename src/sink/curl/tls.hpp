// TLS for transfers of libcurl.
#pragma once

#include <string>

#include "sink/curl/handles.hpp"
#include "sink/tls_settings.hpp"

namespace outbox::sink::curl {

void set_tls(CURL* easy, const TlsSettings& tls);
/// Nothing when the text is empty.
void set_text(CURL* easy, CURLoption option, const std::string& text);

}  // namespace outbox::sink::curl
