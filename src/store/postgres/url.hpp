// The URL of a PostgreSQL server as libpq parses it: whether it can be used, and what of it may be shown. Opens nothing.
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <outbox/error.hpp>
#include <string>

namespace outbox::store::postgres {

struct FreeOptions {
  void operator()(PQconninfoOption* options) const noexcept { PQconninfoFree(options); }
};
using Options = std::unique_ptr<PQconninfoOption, FreeOptions>;

/// The message goes on from the name of the setting: "has a port that is no number". It quotes nothing of the URL, any part
/// of which may be a piece of a password that was not encoded.
[[nodiscard]] Status check_url(const std::string& url);

/// As a URL, of one that check_url() accepts: parameters and values known to be harmless, and *** for all others.
[[nodiscard]] std::string shown_url(const std::string& url);

}  // namespace outbox::store::postgres
