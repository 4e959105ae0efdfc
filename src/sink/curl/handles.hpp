// Handles of libcurl that free themselves, and what is set in them.
#pragma once

#include <curl/curl.h>

#include <string>

#include "base/error.hpp"
#include "base/owned.hpp"
#include "sink/tls_settings.hpp"

namespace outbox::sink::curl {

using Easy = Owned<CURL, curl_easy_cleanup>;
using Multi = Owned<CURLM, curl_multi_cleanup>;
using List = Owned<curl_slist, curl_slist_free_all>;
using Url = Owned<CURLU, curl_url_cleanup>;

/// A new handle. Any thread may call this: the first call prepares libcurl.
[[nodiscard]] inline Easy new_easy() {
  static const CURLcode prepared = curl_global_init(CURL_GLOBAL_DEFAULT);
  OUTBOX_CHECK(prepared == CURLE_OK);
  Easy easy(curl_easy_init());
  OUTBOX_CHECK(easy != nullptr);
  return easy;
}

/// Sets an option that can only fail for lack of memory.
template <class Value>
void set(CURL* easy, CURLoption option, Value value) {
  OUTBOX_CHECK(curl_easy_setopt(easy, option, value) == CURLE_OK);
}

/// Appends a copy of the text.
inline void append(List& list, const char* text) {
  curl_slist* const longer = curl_slist_append(list.get(), text);
  OUTBOX_CHECK(longer != nullptr);
  (void)list.release();
  list.reset(longer);
}

// ---- TLS for transfers of libcurl.

void set_tls(CURL* easy, const TlsSettings& tls);
/// Sets the option unless the text is empty.
void set_text(CURL* easy, CURLoption option, const std::string& text);

}  // namespace outbox::sink::curl
