// What both stores check in a page request.
#pragma once

#include "base/error.hpp"
#include "store/log_reader.hpp"

namespace outbox::store {

/// No store reads single lanes yet: a request for some of them is refused, never answered with the events of all.
[[nodiscard]] inline Status check_request(const PageRequest& request) {
  if (request.lanes == kAllLanes) return {};
  return fail(Errc::unsupported, "a page of some lanes only cannot be read");
}

}  // namespace outbox::store
