#include "pg/url.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"

namespace outbox::pg {
namespace {

constexpr auto npos = std::string_view::npos;
constexpr const char* kMask = "***";
constexpr const char* kEncode =
    "percent-encode it: %40 for @, %2F for /, %3F for ?, %25 for %, %20 for a blank; what comes from ${env:NAME} or "
    "${file:PATH} is encoded automatically";

/// The parameters that the URL sets, in the order of libpq's table.
using Given = std::vector<std::pair<std::string_view, std::string_view>>;

Given given_in(const PQconninfoOption* option) {
  Given given;
  for (; option != nullptr && option->keyword != nullptr; ++option) {
    const bool set = option->val != nullptr && *option->val != '\0';
    if (set) given.emplace_back(option->keyword, option->val);
  }
  return given;
}

std::string_view find_value(const Given& given, std::string_view keyword) {
  const auto found = std::find_if(given.begin(), given.end(),
                                  [&](const auto& one) { return one.first == keyword; });
  return found == given.end() ? std::string_view() : found->second;
}

std::vector<std::string_view> split(std::string_view list, char separator = ',') {
  std::vector<std::string_view> items;
  while (true) {
    items.push_back(list.substr(0, list.find(separator)));
    if (items.back().size() == list.size()) return items;
    list.remove_prefix(items.back().size() + 1);
  }
}

// ---- what values may be

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_number(std::string_view text) { return number_in<std::int32_t>(text).has_value(); }
bool is_port(std::string_view text) { return number_in<std::uint16_t>(text).value_or(0) > 0; }

/// Whether all items are ports. An empty item stands for the default.
bool are_ports(std::string_view list) {
  const auto ports = split(list);
  return std::all_of(ports.begin(), ports.end(),
                     [](std::string_view port) { return port.empty() || is_port(port); });
}

bool consists_of(std::string_view text, std::string_view marks) {
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return is_alnum(c) || marks.find(c) != npos; });
}
bool is_name(std::string_view text) { return consists_of(text, "_.-"); }
bool is_place(std::string_view text) { return consists_of(text, "_.-:/,%"); }
bool is_path(std::string_view text) { return consists_of(text, "_.-/~"); }

/// Whether `words`, separated by blanks, has the word.
bool has_word(std::string_view words, std::string_view wanted) {
  const auto all = split(words, ' ');
  return wanted != "|" && std::find(all.begin(), all.end(), wanted) != all.end();
}

/// Parameters that may be shown, with the values that may be. No other is shown, because a newer
/// libpq may have new secrets.
struct Public {
  std::string_view keywords;
  bool (*harmless)(std::string_view){nullptr};
  std::string_view words{};  ///< If set, the possible values, as "a | b", instead of a function.
};

constexpr std::array<Public, 8> kPublic{{
    {"user dbname service application_name fallback_application_name client_encoding", is_name},
    {"host hostaddr", is_place},
    {"port", are_ports},
    {"connect_timeout keepalives keepalives_idle keepalives_interval keepalives_count tcp_user_timeout",
     is_number},
    {"passfile sslcert sslkey sslrootcert sslcrl", is_path},
    {"sslmode", nullptr, "disable | allow | prefer | require | verify-ca | verify-full"},
    {"gssencmode channel_binding", nullptr, "disable | prefer | require"},
    {"target_session_attrs", nullptr,
     "any | read-write | read-only | primary | standby | prefer-standby"},
}};

const Public* find_public(std::string_view keyword) {
  for (const Public& one : kPublic) {
    if (has_word(one.keywords, keyword)) return &one;
  }
  return nullptr;
}

bool may_be_shown(std::string_view keyword, std::string_view value) {
  const Public* const found = find_public(keyword);
  if (found == nullptr) return false;
  return found->harmless != nullptr ? found->harmless(value) : has_word(found->words, value);
}

// ---- what cannot be right

tl::unexpected<Error> refused(std::string what, std::string hint = kEncode) {
  return fail(Errc::invalid_argument, std::move(what), std::move(hint));
}

/// Fails for a character that had to be encoded, because libpq would misread what follows it.
Status check_encoding(std::string_view url) {
  for (std::size_t at = 0; at < url.size(); ++at) {
    if (url[at] == ' ') return refused("has a blank");
    if (url[at] != '%') continue;
    const bool good = at + 2 < url.size() && hex_value(url[at + 1]) >= 0 &&
                      hex_value(url[at + 2]) >= 0 && url.substr(at + 1, 2) != "00";
    if (!good) return refused("has a % that is not followed by two hexadecimal digits");
  }
  const std::string_view rest = url.substr(url.find("://") + 3);
  const std::size_t at = rest.find('@');
  if (at == npos) return {};
  const bool early = rest.find_first_of("/?") < at;
  if (early || rest.find('@', at + 1) != npos)
    return refused("has an @, a / or a ? in its password, or an @ after the host");
  return {};
}

/// Shows only the keyword that was probably meant: libpq's message quotes what it does not know.
tl::unexpected<Error> not_parsed(std::string_view said) {
  constexpr std::array<std::string_view, 2> kUnknown{"invalid connection option",
                                                     "invalid URI query parameter"};
  const bool unknown = std::any_of(kUnknown.begin(), kUnknown.end(),
                                   [&](std::string_view text) { return said.find(text) != npos; });
  if (!unknown) {
    return refused("is not what libpq takes for a URL or a connection string",
                   "write postgresql://USER@HOST:PORT/DATABASE?PARAMETER=VALUE; in a password, " +
                       std::string(kEncode));
  }
  const Options defaults(PQconndefaults());
  std::vector<std::string_view> known;
  for (const auto* option = defaults.get(); option != nullptr && option->keyword != nullptr;
       ++option)
    known.emplace_back(option->keyword);
  const std::size_t from = std::min(said.find('"'), said.size() - 1) + 1;
  return refused(
      "has a parameter that libpq does not know",
      did_you_mean(said.substr(from, said.find('"', from) - from), known,
                   "leave it out; if it is a part of the password, " + std::string(kEncode)));
}

Status check_ports(const Given& given) {
  const std::string_view ports = find_value(given, "port");
  if (!are_ports(ports)) {
    return refused(
        "has a port that is not a number from 1 to 65535, or a password with a character that must be "
        "encoded");
  }
  const std::string_view hosts = find_value(given, "hostaddr").empty()
                                     ? find_value(given, "host")
                                     : find_value(given, "hostaddr");
  const std::size_t count = split(ports).size();
  if (count == 1 || count == split(hosts).size()) return {};
  return refused("does not have as many ports as hosts", "one port for all hosts, or one for each");
}

Status check_value(std::string_view keyword, std::string_view value) {
  const Public* const found = find_public(keyword);
  if (found == nullptr) return {};
  const std::string name(keyword);
  if (found->harmless == is_number && !is_number(value))
    return refused("has a " + name + " that is not a whole number", "such as " + name + "=10");
  if (!found->words.empty() && !has_word(found->words, value))
    return refused("has an unknown " + name, "one of " + std::string(found->words));
  return {};
}

// ---- showing it

std::string encoded(std::string_view value) { return percent_encoded(value, "-._~/*,:"); }

std::string shown(std::string_view keyword, std::string_view value) {
  return may_be_shown(keyword, value) ? encoded(value) : kMask;
}

std::string user_info(const Given& given) {
  std::string text;
  if (const auto user = find_value(given, "user"); !user.empty()) text = shown("user", user);
  if (!find_value(given, "password").empty()) text.append(":").append(kMask);
  return text.empty() ? text : text + "@";
}

/// The hosts with their ports, as "a:1,b:2".
std::string places(std::string_view host_list, std::string_view port_list) {
  const auto hosts = split(host_list);
  const auto ports = split(port_list);
  std::string text;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const bool bracket = hosts[i].find(':') != npos;
    const std::string_view port = ports.size() == 1 ? ports.front() : ports[i];
    text.append(i == 0 ? "" : ",").append(bracket ? "[" : "");
    text.append(encoded(hosts[i])).append(bracket ? "]" : "");
    if (!port.empty()) text.append(":").append(port);
  }
  return text;
}

}  // namespace

Status check_url(const std::string& url) {
  const bool is_url = url.starts_with("postgresql://") || url.starts_with("postgres://");
  if (is_url) {
    OUTBOX_TRY(check_encoding(url));
  }
  char* said = nullptr;
  const Options parsed(PQconninfoParse(url.c_str(), &said));
  const std::string message = said == nullptr ? "" : said;
  PQfreemem(said);
  if (!parsed) return not_parsed(message);
  const Given given = given_in(parsed.get());
  OUTBOX_TRY(check_ports(given));
  for (const auto& [keyword, value] : given) {
    OUTBOX_TRY(check_value(keyword, value));
  }
  return {};
}

std::string shown_url(const std::string& url) {
  const Options parsed(PQconninfoParse(url.c_str(), nullptr));
  const Given given = given_in(parsed.get());
  const std::string_view host = find_value(given, "host");
  const std::string_view port = find_value(given, "port");
  // The directory of a socket can only be a parameter.
  const bool in_front = host.find('/') == npos && may_be_shown("host", host);
  std::string text = "postgresql://" + user_info(given);
  if (in_front) text += places(host, port);
  if (const auto database = find_value(given, "dbname"); !database.empty())
    text += "/" + shown("dbname", database);
  char before = '?';
  for (const auto& [keyword, value] : given) {
    const bool place = keyword == "host" || keyword == "port";
    if (keyword == "user" || keyword == "password" || keyword == "dbname" || (place && in_front))
      continue;
    text.append(1, before).append(keyword).append("=").append(shown(keyword, value));
    before = '&';
  }
  return text;
}

}  // namespace outbox::pg
