// A migration as it is embedded into the binary (cmake/EmbedSql.cmake). Never edited after a release.
#pragma once

#include <string_view>

namespace outbox::store {

struct Migration {
  int version{0};  ///< 1, 2, 3 ...: the number its name begins with.
  std::string_view name;
  std::string_view sql;
  std::string_view checksum;  ///< SHA-256 of the file, in hex.
};

}  // namespace outbox::store
