#include "store/postgres/query.hpp"

#include <cstdint>

#include "pg/identifier.hpp"

namespace outbox::store::postgres {
namespace {

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

}  // namespace

void replace_all(std::string& text, std::string_view marker, std::string_view value) {
  for (auto at = text.find(marker); at != std::string::npos;
       at = text.find(marker, at + value.size()))
    text.replace(at, marker.size(), value);
}

std::string with_schema(std::string_view sql, std::string_view schema) {
  std::string text(sql);
  replace_all(text, "{schema}", pg::quote_identifier(schema));
  replace_all(text, "{name}", schema);
  return text;
}

Query prepared(std::string_view what, std::string_view sql, std::string_view schema) {
  Query query = unprepared(what, sql, schema);
  query.handle = "outbox_" + std::to_string(fnv1a(query.sql));
  return query;
}

Query unprepared(std::string_view what, std::string_view sql, std::string_view schema) {
  return Query{.what = std::string(what), .sql = with_schema(sql, schema), .handle = {}};
}

}  // namespace outbox::store::postgres
