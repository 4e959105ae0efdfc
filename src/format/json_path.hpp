// Looks up one value in a JSON text by its path. Pure.
#pragma once

#include <string_view>

#include "event/arena.hpp"

namespace outbox::format {

/// The value at a path such as "customer.address.0.city", which has names of members and numbers of
/// elements (from 0) between dots: the characters of a string, or the JSON text of anything else.
/// Empty, with a null pointer, if the text is not JSON or has no such value, or the value is null.
[[nodiscard]] std::string_view find_json(std::string_view json, std::string_view path,
                                         event::Arena& arena);

}  // namespace outbox::format
