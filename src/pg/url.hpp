// The URL of a PostgreSQL server as libpq parses it: its validity, and what may be shown of it.
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <outbox/error.hpp>
#include <string>

namespace outbox::pg {

struct FreeOptions {
  void operator()(PQconninfoOption* options) const noexcept { PQconninfoFree(options); }
};
using Options = std::unique_ptr<PQconninfoOption, FreeOptions>;

/// The message follows the name of the setting: "has a port that is no number". It quotes no part
/// of the URL, since any may be a piece of a password that was not encoded.
[[nodiscard]] Status check_url(const std::string& url);

/// A URL that check_url() accepts, as people may see it: *** hides what may be harmful.
[[nodiscard]] std::string shown_url(const std::string& url);

}  // namespace outbox::pg
