// Wakes an idle reader when events are committed.
#pragma once

#include <cstdint>
#include <outbox/duration.hpp>
#include <outbox/error.hpp>

#include "store/part.hpp"

namespace outbox::store {

/// interrupt() from any thread; the rest from one thread at a time.
class Wakeup : public Part {
 public:
  enum class Wake : std::uint8_t { notified, timeout, interrupted };

  /// True: every commit from now on will wake (while another relay is armed instead: nearly every one); poll once more, then wait().
  /// False: writers are in flight, or this store cannot notify; keep polling.
  [[nodiscard]] virtual Result<bool> arm() = 0;
  [[nodiscard]] virtual Status disarm() = 0;
  /// After a timeout it may be called again without arm(), once a poll has found nothing, if it stays armed.
  [[nodiscard]] virtual Result<Wake> wait(Duration longest) = 0;
  [[nodiscard]] virtual bool stays_armed() const = 0;
  virtual void interrupt() noexcept = 0;
  /// SQL statements sent so far.
  [[nodiscard]] virtual std::uint64_t statements() const = 0;
};

}  // namespace outbox::store
