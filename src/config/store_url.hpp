// References in the URL of the store.
#pragma once

#include <outbox/error.hpp>
#include <string>

namespace outbox::config {

/// Replaces the references of a store.url. A user, a password or a parameter that comes from one is taken literally: it is
/// percent-encoded in a URL and quoted in a "host=... password=..." text.
[[nodiscard]] Result<std::string> resolve_store_url(const std::string& text,
                                                    const std::string& directory);

}  // namespace outbox::config
