#include "console/authenticator.hpp"

#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/sha256.hpp"
#include "base/steady.hpp"
#include "base/text.hpp"

namespace outbox::console {
namespace {

/// A name that a browser accepts only with TLS, from this host alone (RFC 6265bis, 4.1.3.2).
constexpr std::string_view kSecureCookie = "__Host-outbox-session";
/// Of a console on this machine without TLS.
constexpr std::string_view kPlainCookie = "outbox-session";
constexpr std::string_view kBearer = "Bearer ";

/// 256 bits, as hexadecimal digits.
std::optional<std::string> random_digits() {
  std::array<unsigned char, 32> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) return {};
  std::string digits;
  for (const unsigned char byte : bytes) append_hex(digits, static_cast<char>(byte));
  return digits;
}

Problem no_token() {
  return {.status = 401,
          .title = "the console asks for a token",
          .hint = "Authorization: Bearer TOKEN; outbox console token add makes one"};
}

Person to_person(const KnownToken& token) {
  return {.name = token.name, .role = token.role, .payloads = token.payloads};
}

}  // namespace

std::optional<std::string> generate_token() {
  const auto digits = random_digits();
  if (!digits) return {};
  return "outbox_" + *digits;
}

std::string digest_token(std::string_view token) { return sha256_digits(token); }

Authenticator::Authenticator(Options options)
    : options_([&options] {
        if (!options.steady) options.steady = now_steady;
        if (!options.wall) options.wall = [] { return std::chrono::system_clock::now(); };
        return std::move(options);
      }()) {}

tl::expected<Person, Problem> Authenticator::identify(const Headers& headers,
                                                      std::string_view peer) {
  const std::string authorization = headers("Authorization");
  if (!authorization.empty()) {
    if (!authorization.starts_with(kBearer)) return tl::unexpected(no_token());
    auto person = find(digest_token(std::string_view(authorization).substr(kBearer.size())));
    if (!person && person.error().status == 401) return tl::unexpected(refuse(peer));
    return person;
  }
  const std::string cookies = headers("Cookie");
  const auto digest = use_session(session_in(cookies));
  if (!digest) return tl::unexpected(no_token());
  return find(*digest);
}

tl::expected<Authenticator::Session, Problem> Authenticator::log_in(std::string_view token,
                                                                    std::string_view peer) {
  const std::string digest = digest_token(token);
  auto person = find(digest);
  if (!person) {
    if (person.error().status == 401) return tl::unexpected(refuse(peer));
    return tl::unexpected(person.error());
  }
  auto id = random_digits();
  if (!id)
    return tl::unexpected(Problem{
        .status = 503, .title = "this machine has no random numbers now", .hint = "try again"});
  const SteadyTime now = options_.steady();
  const MutexLock lock(mutex_);
  forget_sessions();
  sessions_[*id] = {.digest = digest, .begun = now, .used = now};
  return Session{.id = std::move(*id), .person = std::move(*person)};
}

void Authenticator::log_out(const Headers& headers) {
  const std::string cookies = headers("Cookie");
  const MutexLock lock(mutex_);
  const auto found = sessions_.find(session_in(cookies));
  if (found != sessions_.end()) sessions_.erase(found);
}

/// The answer takes as long for any wrong token: all are compared.
tl::expected<Person, Problem> Authenticator::find(std::string_view digest) {
  if (const Status read = refresh(); !read)
    return tl::unexpected(
        Problem{.status = 503,
                .title = "the store does not say who may use the console: " + read.error().message,
                .hint = "try again when the store can be reached"});
  const auto now =
      std::chrono::duration_cast<std::chrono::microseconds>(options_.wall().time_since_epoch())
          .count();
  const MutexLock lock(mutex_);
  std::optional<Person> person;
  for (const KnownToken& token : tokens_) {
    const bool lives = !token.expires_us || *token.expires_us > now;
    if (is_same_secret(token.digest, digest) && lives) person = to_person(token);
  }
  if (!person) return tl::unexpected(no_token());
  return *person;
}

Status Authenticator::refresh() {
  {
    const MutexLock lock(mutex_);
    if (read_ && (reading_ || options_.steady() < fresh_until_)) return {};
    reading_ = true;
  }
  auto tokens = options_.read_tokens();
  const MutexLock lock(mutex_);
  reading_ = false;
  if (!tokens && !read_) return pass(tokens);
  fresh_until_ = options_.steady() + options_.fresh;
  if (tokens) {
    tokens_ = std::move(*tokens);
    read_ = true;
  }
  return {};
}

Problem Authenticator::refuse(std::string_view peer) {
  const SteadyTime now = options_.steady();
  bool tells = false;
  {
    const MutexLock lock(mutex_);
    if (now >= minute_) {
      minute_ = now + std::chrono::minutes(1);
      failed_ = 0;
    }
    tells = ++failed_ <= options_.failures;
  }
  if (!tells)
    return {.status = 429, .title = "too many wrong tokens", .hint = "try again in a minute"};
  log::warn("a request of the console had a wrong token", {{"peer", peer}});
  return {.status = 401,
          .title = "the console does not know this token, or it has expired",
          .hint = "outbox console token list shows the tokens that there are"};
}

void Authenticator::forget_sessions() {
  const SteadyTime now = options_.steady();
  std::erase_if(sessions_, [&](const auto& entry) {
    return now - entry.second.used > options_.idle || now - entry.second.begun > options_.longest;
  });
  if (sessions_.size() < options_.sessions) return;
  sessions_.erase(std::min_element(
      sessions_.begin(), sessions_.end(),
      [](const auto& one, const auto& other) { return one.second.used < other.second.used; }));
}

std::optional<std::string> Authenticator::use_session(std::string_view id) {
  const SteadyTime now = options_.steady();
  const MutexLock lock(mutex_);
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return {};
  Open& session = found->second;
  if (now - session.used > options_.idle || now - session.begun > options_.longest) {
    sessions_.erase(found);
    return {};
  }
  session.used = now;
  return session.digest;
}

std::string_view session_in(std::string_view cookies) {
  while (!cookies.empty()) {
    const std::string_view pair = cookies.substr(0, cookies.find(';'));
    cookies.remove_prefix(std::min(pair.size() + 1, cookies.size()));
    const auto begin = pair.find_first_not_of(' ');
    const auto equals = pair.find('=');
    if (begin == std::string_view::npos || equals == std::string_view::npos) continue;
    const std::string_view name = pair.substr(begin, equals - begin);
    if (name == kSecureCookie || name == kPlainCookie) return pair.substr(equals + 1);
  }
  return {};
}

std::string session_cookie(std::string_view id, bool secure) {
  std::string cookie(secure ? kSecureCookie : kPlainCookie);
  cookie += "=" + std::string(id) + "; Path=/; HttpOnly; SameSite=Strict";
  if (secure) cookie += "; Secure";
  if (id.empty()) cookie += "; Max-Age=0";
  return cookie;
}

}  // namespace outbox::console
