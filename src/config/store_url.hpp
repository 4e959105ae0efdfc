// store.url. Drivers quote what they do not understand of it, and that may be a part of the password: so references that
// stand in it are encoded, and what has a mistake is refused before a driver sees it, in words that show nothing of it.
#pragma once

#include <outbox/error.hpp>
#include <string>

namespace outbox::config {

/// Replaces the references of a store.url. A user, a password or a parameter that comes from one is taken as it is: it is
/// percent-encoded in a URL and quoted in a "host=... password=..." text.
[[nodiscard]] Result<std::string> resolve_store_url(const std::string& text,
                                                    const std::string& directory);

/// Whether it is an address of a store that can be understood. Opens nothing, and shows nothing of it.
[[nodiscard]] Status check_store_url(const std::string& url);

/// Of PostgreSQL: small letters, digits and '_'.
[[nodiscard]] Status check_schema(const std::string& name);

}  // namespace outbox::config
