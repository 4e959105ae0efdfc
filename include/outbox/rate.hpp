// outbox/rate.hpp: how many events or tasks may begin in a period.
//
//   outbox::SubscriptionSpec mails{.name = "mails", .sink = "http"};
//   mails.rate = {30, std::chrono::minutes(1)};
//
// Threads: values.
// Lifetime: values.
// Errors: what takes a Rate refuses another period than a second, a minute or an hour.
#pragma once

#include <chrono>
#include <cstddef>

namespace outbox {

struct Rate {
  /// At most 10,000,000. Default: 0, no limit.
  std::size_t count{0};
  /// A second, a minute or an hour. Default: 1 s.
  std::chrono::seconds per{1};

  bool operator==(const Rate&) const = default;
};

}  // namespace outbox
