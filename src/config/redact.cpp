#include "config/redact.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace outbox::config {
namespace {

constexpr auto npos = std::string_view::npos;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// A password may hold any character, so everything up to the last '@' before the query belongs to it.
std::string mask_user_info(std::string_view text) {
  const std::size_t scheme = text.find("://");
  if (scheme == npos) return std::string(text);
  const std::size_t from = scheme + 3;
  const std::size_t query = std::min(text.find('?', from), text.size());
  const std::size_t at = text.substr(0, query).rfind('@');
  const std::size_t colon = text.find(':', from);
  if (at == npos || at < from || colon == npos || colon > at) return std::string(text);
  return std::string(text.substr(0, colon + 1)).append(kMask).append(text.substr(at));
}

/// The end of a value that begins at `from`: of 'a quoted one' in a conninfo string, else up to '&' or a blank.
std::size_t value_end(std::string_view text, std::size_t from) {
  if (from >= text.size() || text[from] != '\'')
    return std::min(text.find_first_of("& ", from), text.size());
  std::size_t at = from + 1;
  while (at < text.size() && text[at] != '\'') at += text[at] == '\\' ? 2U : 1U;
  return std::min(at + 1, text.size());
}

/// `password=...` and `sslpassword=...`, in a query or a conninfo string.
std::string mask_parameters(std::string text) {
  constexpr std::string_view kWord = "password";
  std::size_t from = 0;
  while (true) {
    const std::size_t word = lower(text).find(kWord, from);
    if (word == npos) return text;
    std::size_t at = word + kWord.size();
    while (at < text.size() && text[at] == ' ') ++at;
    from = at;
    if (at >= text.size() || text[at] != '=') continue;
    ++at;
    while (at < text.size() && text[at] == ' ') ++at;
    text.replace(at, value_end(text, at) - at, kMask);
    from = at + kMask.size();
  }
}

}  // namespace

std::string redact(std::string_view text) { return mask_parameters(mask_user_info(text)); }

bool is_secret_name(std::string_view name) {
  constexpr std::array<std::string_view, 10> kSecret{
      "password",   "passwd",  "passphrase", "secret",        "token",
      "credential", "key.pem", "api_key",    "authorization", "oauthbearer.config"};
  constexpr std::array<std::string_view, 5> kOpenEndings{".location", ".url", "path", "_file",
                                                         ".type"};
  const std::string word = lower(name);
  const auto within = [&](std::string_view part) { return word.find(part) != std::string::npos; };
  const auto ends = [&](std::string_view part) { return word.ends_with(part); };
  return std::any_of(kSecret.begin(), kSecret.end(), within) &&
         std::none_of(kOpenEndings.begin(), kOpenEndings.end(), ends);
}

}  // namespace outbox::config
