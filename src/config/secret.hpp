// Which settings hold secrets. Pure. Of the store's address: store/url.hpp.
#pragma once

#include <string_view>

namespace outbox::config {

inline constexpr std::string_view kMask = "***";

/// True for names like password, client_secret, Authorization: their values are never shown.
[[nodiscard]] bool is_secret_name(std::string_view name);

/// Nothing but letters, digits and marks that join names, numbers, hosts and paths: no URL with a user in it, nothing quoted,
/// no assignment. What is not is not shown either, unless its setting is known to hold no secret.
[[nodiscard]] bool is_plain_value(std::string_view value);

}  // namespace outbox::config
