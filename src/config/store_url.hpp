// What of the store's address is the configuration's business: references in it, which are encoded so that no part of a
// password is taken for something else, and the schema. What may be in an address, and be shown of it: store/url.hpp.
#pragma once

#include <outbox/error.hpp>
#include <string>

namespace outbox::config {

/// Replaces the references of a store.url. A user, a password or a parameter that comes from one is taken as it is: it is
/// percent-encoded in a URL and quoted in a "host=... password=..." text.
[[nodiscard]] Result<std::string> resolve_store_url(const std::string& text,
                                                    const std::string& directory);

/// Of PostgreSQL: small letters, digits and '_'.
[[nodiscard]] Status check_schema(const std::string& name);

}  // namespace outbox::config
