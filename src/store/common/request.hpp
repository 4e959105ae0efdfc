// What both stores ask of a page request.
#pragma once

#include <outbox/error.hpp>

#include "store/log_reader.hpp"

namespace outbox::store {

/// No store reads single lanes yet: a request for some of them is refused, never answered with events of all.
[[nodiscard]] Status check_request(const PageRequest& request);

}  // namespace outbox::store
