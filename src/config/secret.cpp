#include "config/secret.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "base/text.hpp"

namespace outbox::config {
bool is_secret_name(std::string_view name) {
  constexpr std::array<std::string_view, 8> kSecret{"password", "passwd",       "passphrase",
                                                    "secret",   "token",        "credential",
                                                    "api_key",  "authorization"};
  constexpr std::array<std::string_view, 5> kOpenEndings{".location", ".url", "path", "_file",
                                                         ".type"};
  const std::string word = to_lower(name);
  const auto within = [&](std::string_view part) { return word.find(part) != std::string::npos; };
  const auto ends = [&](std::string_view part) { return word.ends_with(part); };
  return std::any_of(kSecret.begin(), kSecret.end(), within) &&
         std::none_of(kOpenEndings.begin(), kOpenEndings.end(), ends);
}

bool is_plain_value(std::string_view value) {
  constexpr std::string_view kMarks = " ._,:/+*-";
  return std::all_of(value.begin(), value.end(), [&](char c) {
    return is_alnum(c) || kMarks.find(c) != std::string_view::npos;
  });
}

}  // namespace outbox::config
