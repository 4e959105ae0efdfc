// The attempts of with_transaction(), counted, with pauses between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <outbox/error.hpp>
#include <outbox/retry.hpp>

namespace outbox::store {

class Attempts {
 public:
  /// Throws when the options are not valid. They must outlive it.
  explicit Attempts(const RetryOptions& options);

  /// Whether an exception of the function says that it was a conflict.
  [[nodiscard]] bool calls_conflict(const std::exception& thrown) const;
  /// After a conflict: waits, and says whether there is another attempt.
  [[nodiscard]] bool next();

 private:
  const RetryOptions& options_;
  const std::uint64_t seed_;
  std::size_t made_{1};
};

}  // namespace outbox::store
