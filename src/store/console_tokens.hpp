// Who may use `outbox console` (docs/design/console.md).
#pragma once

#include <cstdint>
#include <optional>
#include <outbox/error.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "store/interface.hpp"

namespace outbox::store {

/// A token lets whoever has it use the console. The store knows its hash only.
struct ConsoleToken {
  std::string name;
  std::string digest;                        ///< SHA-256 of the token: 64 hexadecimal digits.
  std::string role;                          ///< "viewer", "operator" or "admin".
  bool payloads{false};                      ///< Whether it shows payloads and headers of events.
  std::string created_by{};                  ///< The person.
  std::int64_t created_us{0};                ///< Microseconds since 1970, UTC; set by the store.
  std::optional<std::int64_t> expires_us{};  ///< Not set: it does not expire.
};

/// It is used by one thread at a time.
class ConsoleTokens : public Interface {
 public:
  /// All tokens, in the order of their names, those that have expired too.
  [[nodiscard]] virtual Result<std::vector<ConsoleToken>> list() = 0;
  /// Fails with already_exists if there is a token of this name.
  [[nodiscard]] virtual Status add(const ConsoleToken& token) = 0;
  /// Fails with not_found if there is no token of this name.
  [[nodiscard]] virtual Status remove(std::string_view name) = 0;
};

}  // namespace outbox::store
