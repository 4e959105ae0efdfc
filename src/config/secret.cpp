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
  constexpr std::string_view kMarksOfFields = "._:|-";
  bool in_field = false;
  for (const char c : value) {
    const std::string_view marks = in_field ? kMarksOfFields : kMarks;
    if (c == (in_field ? '}' : '{')) {
      in_field = !in_field;
    } else if (!is_alnum(c) && marks.find(c) == std::string_view::npos) {
      return false;
    }
  }
  return !in_field;
}

}  // namespace outbox::config
