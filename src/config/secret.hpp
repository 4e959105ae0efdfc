// Which settings may hold secrets. Pure. For the store's address see store/url.hpp.
#pragma once

#include <string_view>

namespace outbox::config {

inline constexpr std::string_view kMask = "***";

/// Whether the name suggests a secret (client_secret, Authorization), whose value is never shown.
[[nodiscard]] bool is_secret_name(std::string_view name);

/// Whether the value has only letters, digits, punctuation of names, numbers, hosts and paths, and
/// fields of templates: no URL with a user, no quotes, no assignment. Other values are shown only
/// if their setting cannot hold a secret.
[[nodiscard]] bool is_plain_value(std::string_view value);

}  // namespace outbox::config
