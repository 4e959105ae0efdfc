#include "store/postgres/rows.hpp"

#include <charconv>

namespace outbox::store::postgres {

std::int64_t Rows::affected() const {
  const std::string_view count = PQcmdTuples(result_.get());
  std::int64_t value = 0;
  std::from_chars(count.data(), count.data() + count.size(), value);
  return value;
}

}  // namespace outbox::store::postgres
