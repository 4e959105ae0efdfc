// Lets a transfer of libcurl connect only where a Guard allows it.
#pragma once

#include <curl/curl.h>

#include <string>

#include "sink/curl/guard.hpp"

namespace outbox::sink::curl {

/// Belongs to one transfer, and stays in place until that is done.
struct GuardedConnect {
  const Guard* guard{nullptr};  ///< Null: it may connect anywhere.
  std::string refused{};        ///< "10.0.0.7, a private network": the first address that was.
};

/// Decides at each connection that the transfer makes, when its address is known (CURLOPT_OPENSOCKETFUNCTION). A connection
/// that is reused was made by a transfer with the same guard, if all that share the connections have it.
void guard(CURL* easy, GuardedConnect& connect);

}  // namespace outbox::sink::curl
