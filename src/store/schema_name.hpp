// The one rule for names of schemas.
#pragma once

#include <outbox/error.hpp>
#include <string_view>

namespace outbox::store {

/// Letters, digits and '_', at most 63. The message follows the name of the setting ("is not a name
/// of ...").
[[nodiscard]] Status check_schema_name(std::string_view schema);

/// The same as a message of its own: "the schema is not a name of ...".
[[nodiscard]] Status check_schema(std::string_view schema);

}  // namespace outbox::store
