// Taking passwords out of what is shown. Pure.
#pragma once

#include <string>
#include <string_view>

namespace outbox::config {

inline constexpr std::string_view kMask = "***";

/// Masks the password of a URL (user:password@host, ?password=...) or of a conninfo string (password=...). Text that is
/// neither comes back unchanged. In doubt it masks more.
[[nodiscard]] std::string redact(std::string_view text);

/// True for names like sasl.password, client.secret, ssl.key.pem: their values are never shown.
[[nodiscard]] bool is_secret_name(std::string_view name);

}  // namespace outbox::config
