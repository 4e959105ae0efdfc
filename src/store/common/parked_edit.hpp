// Why a parked event was not edited, in the words of the stores.
#pragma once

#include <outbox/error.hpp>
#include <string_view>

#include "store/parked_events.hpp"

namespace outbox::store {

/// "edited", or what stood in the way: "gone", "waiting", "due".
[[nodiscard]] Status edit_status(std::string_view word, const ParkedEdit& edit);

}  // namespace outbox::store
