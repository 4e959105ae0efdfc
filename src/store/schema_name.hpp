// The one rule for the names of schemas.
#pragma once

#include <outbox/error.hpp>
#include <string_view>

namespace outbox::store {

/// Whether the name has only letters, digits and '_', at most 63. The message follows the name of
/// the setting ("is not a name of ...").
[[nodiscard]] Status check_schema_name(std::string_view schema);

/// The same check, whose message is a whole sentence: "the schema is not a name of ...".
[[nodiscard]] Status check_schema(std::string_view schema);

}  // namespace outbox::store
