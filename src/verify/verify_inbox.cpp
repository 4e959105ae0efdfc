#include "verify/verify_inbox.hpp"

#include <algorithm>
#include <optional>

#include "base/error.hpp"

namespace outbox::verify {

Result<sink::ReadPart> read_inbox(store::Inbox& inbox, const std::string& consumer,
                                  std::chrono::milliseconds keeps, std::uint32_t part,
                                  const sink::TakeId& take) {
  sink::ReadPart read{.name = "inbox of " + consumer};
  std::optional<std::int64_t> oldest_us;
  OUTBOX_TRY(inbox.read(consumer, [&](const store::InboxRow& row) {
    oldest_us = std::min(oldest_us.value_or(row.received_us), row.received_us);
    const auto id = EventId::parse(row.message_id);
    if (!id) {
      ++read.without_id;
      return;
    }
    for (std::int64_t i = 0; i < row.arrivals; ++i) take(part, *id);
  }));
  if (!oldest_us)
    return fail(Errc::not_found, "the inbox has no message of consumer " + consumer,
                "outbox inbox --store URL lists the consumers that it has");
  // Rows are removed within minutes of their time.
  constexpr std::chrono::hours kMargin{1};
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  if (std::chrono::microseconds(*oldest_us) < now - keeps + kMargin) {
    read.removed = kUncounted;
    read.removed_before_us = *oldest_us;
  }
  return read;
}

}  // namespace outbox::verify
