// Finds out who asks: by a token in the request, or by the session that a token has begun
// (docs/design/console.md).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <outbox/error.hpp>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "base/mutex.hpp"
#include "console/access.hpp"
#include "console/browser.hpp"
#include "console/problem.hpp"

namespace outbox::console {

/// A new token: 256 random bits. Not set if the system has no random bytes.
[[nodiscard]] std::optional<std::string> generate_token();
/// What the store keeps of it.
[[nodiscard]] std::string digest_token(std::string_view token);

struct KnownToken {
  std::string name;
  std::string digest;  ///< digest_token() of it.
  Role role{Role::views};
  bool payloads{false};
  std::optional<std::int64_t> expires_us{};  ///< Microseconds since 1970, UTC.
};

/// Any thread may use it.
class Authenticator {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;
  using WallTime = std::chrono::system_clock::time_point;

  struct Options {
    /// Reads the tokens from the store. It is called at most every `fresh`, by one thread.
    std::function<Result<std::vector<KnownToken>>()> read_tokens{};
    std::function<SteadyTime()> steady{};  ///< Clocks, for tests.
    std::function<WallTime()> wall{};
    /// A token that was removed or added counts after this time.
    std::chrono::seconds fresh{5};
    std::chrono::minutes idle{30};   ///< A session ends when it is not used for so long,
    std::chrono::hours longest{12};  ///< and in any case after this.
    std::size_t sessions{1000};      ///< Beyond it the one that was used least recently ends.
    std::size_t failures{30};        ///< Wrong tokens a minute that are answered with 401.
  };

  struct Session {
    std::string id;
    Person person;
  };

  explicit Authenticator(Options options);

  /// By the header Authorization, or by the cookie. `peer` is for the log.
  [[nodiscard]] tl::expected<Person, Problem> identify(const Headers& headers,
                                                       std::string_view peer);
  [[nodiscard]] tl::expected<Session, Problem> log_in(std::string_view token,
                                                      std::string_view peer);
  void log_out(const Headers& headers);

 private:
  struct Open {
    std::string digest{};  ///< Of the token that began it.
    SteadyTime begun{};
    SteadyTime used{};
  };

  [[nodiscard]] tl::expected<Person, Problem> find(std::string_view digest);
  /// Reads the tokens again if that is due. Without the store the known ones go on.
  [[nodiscard]] Status refresh();
  [[nodiscard]] Problem refuse(std::string_view peer);
  void forget_sessions() OUTBOX_REQUIRES(mutex_);
  /// The digest of the token of the session, which counts as used now.
  [[nodiscard]] std::optional<std::string> use_session(std::string_view id);

  const Options options_;
  Mutex mutex_;
  bool read_ OUTBOX_GUARDED_BY(mutex_){false};
  bool reading_ OUTBOX_GUARDED_BY(mutex_){false};
  SteadyTime fresh_until_ OUTBOX_GUARDED_BY(mutex_){};
  std::vector<KnownToken> tokens_ OUTBOX_GUARDED_BY(mutex_);
  std::map<std::string, Open, std::less<>> sessions_ OUTBOX_GUARDED_BY(mutex_);
  SteadyTime minute_ OUTBOX_GUARDED_BY(mutex_){};
  std::size_t failed_ OUTBOX_GUARDED_BY(mutex_){0};
};

/// The value of the cookie of a session; "" if there is none.
[[nodiscard]] std::string_view session_in(std::string_view cookies);
/// The header Set-Cookie that begins a session, or ends it if `id` is empty. A browser keeps a
/// `secure` one from connections without TLS.
[[nodiscard]] std::string session_cookie(std::string_view id, bool secure);

}  // namespace outbox::console
