// The record of what people have changed (docs/design/audit.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <outbox/error.hpp>
#include <string>
#include <vector>

#include "store/interface.hpp"

namespace outbox::store {

/// What a person has decided to do. A store that is opened with it records each of its changes with
/// it, in the transaction of the change.
struct PersonDecision {
  std::string actor;   ///< Who.
  std::string origin;  ///< Where from: "command line" or "console".
  std::string verb;    ///< What, such as "parked retry".
  std::string filter;  ///< What was chosen: a JSON object.
  std::string reason;  ///< Why; empty if nothing was said.
};

/// A row of the table `audit`.
struct AuditRow {
  std::int64_t id{0};
  std::int64_t at_us{0};  ///< Microseconds since 1970, UTC.
  PersonDecision decision{};
  std::string subscription{};  ///< Empty if the change was not of one subscription.
  std::int64_t count{0};       ///< How many events, tasks, subscriptions or others were changed.
};

/// Selects rows. A field that is not set does not restrict the selection.
struct AuditFilter {
  std::optional<std::int64_t> since_us{};
  std::optional<std::int64_t> before{};  ///< Only rows with a lower id: the next page.
  std::string actor{};
  std::string subscription{};
};

/// It is used by one thread at a time.
class Audit : public Interface {
 public:
  /// At most `limit` rows, the newest first.
  [[nodiscard]] virtual Result<std::vector<AuditRow>> list(const AuditFilter& filter,
                                                           std::size_t limit) = 0;
};

}  // namespace outbox::store
