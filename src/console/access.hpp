// Who asks the console, and what they may do (docs/design/console.md). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/words.hpp"
#include "console/problem.hpp"

namespace outbox::console {

/// What a person may do. Each role may do what the ones before it may.
enum class Role : std::uint8_t {
  views,        ///< Sees how things are.
  operates,     ///< Retries, discards, pauses, resumes and replays.
  administers,  ///< Changes what events say, removes schedules, acknowledges differences.
};

}  // namespace outbox::console

template <>
inline constexpr std::array<std::string_view, 3> outbox::kWords<outbox::console::Role> = {
    "viewer", "operator", "admin"};

namespace outbox::console {

struct Person {
  std::string name;
  Role role{Role::views};
  bool payloads{false};  ///< Sees payloads and headers of events.
};

/// Whoever can connect, if the console asks for no token.
[[nodiscard]] Person anybody();

struct Operation;
/// Why the person may not do it; nullopt if they may.
[[nodiscard]] std::optional<Problem> check_access(const Operation& operation, const Person& person);

/// The document of an operation without payloads, headers and results.
[[nodiscard]] std::string without_payloads(const std::string& document);

/// What is reachable, and how.
struct Exposure {
  bool loopback{true};     ///< Only this machine can connect.
  bool tls{false};         ///< It has a certificate.
  bool behind_tls{false};  ///< A proxy in front of it has one.
  bool tokens{false};      ///< It asks for tokens on this machine, too.
};
[[nodiscard]] bool wants_tokens(const Exposure& exposure);

}  // namespace outbox::console
