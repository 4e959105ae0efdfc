// The description of the API (OpenAPI 3.1), made from the table of operations and from the schemas
// of the documents (docs/reference/json). Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace outbox::console {

/// The schema of what a verb prints with --json.
struct DocumentSchema {
  std::string_view name;  ///< "parked-list"
  std::string_view json;
};
/// The build puts them into the program.
[[nodiscard]] std::span<const DocumentSchema> document_schemas();

[[nodiscard]] std::string openapi_document();

}  // namespace outbox::console
