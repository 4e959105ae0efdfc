#include "store/schema_name.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"

namespace outbox::store {

Status check_schema_name(std::string_view schema) {
  constexpr std::size_t kLongest = 63;
  const auto fits = [](char c) { return is_alnum(c) || c == '_'; };
  const bool good = !schema.empty() && schema.size() <= kLongest && !is_digit(schema.front()) &&
                    std::all_of(schema.begin(), schema.end(), fits);
  if (good) return {};
  return fail(Errc::invalid_argument,
              "is not a name of letters, digits and '_', at most 63 of them",
              "leave it at its default, outbox");
}

Status check_schema(std::string_view schema) {
  Status status = check_schema_name(schema);
  if (!status) status.error().message = "the schema " + status.error().message;
  return status;
}

}  // namespace outbox::store
