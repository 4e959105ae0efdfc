// Handles of libcurl that free themselves, and what is set in them.
#pragma once

#include <curl/curl.h>

#include <memory>
#include <string>

#include "base/error.hpp"
#include "sink/tls_settings.hpp"

namespace outbox::sink::curl {

struct FreeEasy {
  void operator()(CURL* easy) const noexcept { curl_easy_cleanup(easy); }
};
using Easy = std::unique_ptr<CURL, FreeEasy>;

struct FreeMulti {
  void operator()(CURLM* multi) const noexcept { curl_multi_cleanup(multi); }
};
using Multi = std::unique_ptr<CURLM, FreeMulti>;

struct FreeList {
  void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
};
using List = std::unique_ptr<curl_slist, FreeList>;

struct FreeUrl {
  void operator()(CURLU* url) const noexcept { curl_url_cleanup(url); }
};
using Url = std::unique_ptr<CURLU, FreeUrl>;

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
