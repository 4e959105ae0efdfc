// The SQL of an adopted table's columns. Names and words are quoted here; nothing else of a table
// gets into a statement.
#include "base/text.hpp"
#include "pg/identifier.hpp"
#include "store/postgres/adopt_shape.hpp"

namespace outbox::store::postgres {
namespace {

std::string quote_column(const std::string& column) { return "n." + pg::quote_identifier(column); }

std::string write_content_type(const AdoptTable& table, const AdoptShape& shape) {
  if (const auto said = shape.values.find("content_type"); said != shape.values.end())
    return said->second;
  const bool bytes = table.find(*shape.column("payload"))->type == "bytea";
  return bytes ? "application/octet-stream" : "application/json";
}

/// The text of a field: that of its column, or the value that is the same in all rows.
std::string write_text(const AdoptShape& shape, const std::string& field) {
  if (const std::string* const column = shape.column(field))
    return quote_column(*column) + "::text";
  const auto value = shape.values.find(field);
  return quote_literal(value == shape.values.end() ? "" : value->second) + "::text";
}

/// The payload; null if the row has none, as in Debezium's tombstones.
std::string write_payload(const AdoptTable& table, const AdoptShape& shape) {
  const AdoptColumn& column = *table.find(*shape.column("payload"));
  const std::string name = quote_column(column.name);
  if (column.type == "bytea") return name;
  return "convert_to(nullif(" + name + "::text, ''), 'UTF8')";
}

/// Whether check_event() need not look for faults of JSON in the payload. A column of type jsonb
/// has no faults, and one of type json can only contain half of a surrogate pair.
std::string known_json(const AdoptTable& table, const AdoptShape& shape) {
  const AdoptColumn& column = *table.find(*shape.column("payload"));
  const std::string type = to_lower(write_content_type(table, shape));
  const bool must_be_json =
      type.starts_with("application/json") || type.find("+json") != std::string::npos;
  if (!must_be_json || column.type == "jsonb") return "true";
  const std::string is_null = write_payload(table, shape) + " IS NULL";
  if (column.type != "json") return is_null;
  return is_null + " OR NOT " + table.schema + ".has_half_pair(" + quote_column(column.name) +
         "::text)";
}

std::string write_event_id(const AdoptTable& table, const AdoptShape& shape) {
  const AdoptColumn& id = *table.find(*shape.column("id"));
  if (id.type == "uuid") return quote_column(id.name);
  return table.schema + ".adopt_id(" + quote_literal(table.id_name) + ", " + quote_column(id.name) +
         "::text)";
}

std::string write_headers(const AdoptTable& table, const AdoptShape& shape) {
  std::string sql = "'{}'::jsonb";
  if (const std::string* const column = shape.column("headers"))
    sql = table.schema + ".adopt_headers(" + quote_column(*column) + "::jsonb)";
  if (!shape.headers.empty()) {
    sql += " || jsonb_strip_nulls(jsonb_build_object(";
    const char* comma = "";
    for (const auto& [column, name] : shape.headers) {
      sql += comma + quote_literal(name) + ", " + quote_column(column) + "::text";
      comma = ", ";
    }
    sql += "))";
  }
  const AdoptColumn& id = *table.find(*shape.column("id"));
  if (id.type == "uuid") return sql;
  const std::string name = quote_column(id.name) + "::text";
  const std::string original = sql + " || jsonb_build_object('adopted-id', " + name + ")";
  if (is_whole(id)) return original;
  return "CASE WHEN " + name + " ~ '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$' THEN " +
         sql + " ELSE " + original + " END";
}

std::string quoted_words(const std::vector<std::string>& words) {
  std::string sql = "ARRAY[";
  for (const std::string& word : words)
    sql += (sql.back() == '[' ? "" : ", ") + quote_literal(word);
  return sql + "]::text[]";
}

}  // namespace

std::string quote_literal(std::string_view text) {
  std::string quoted = text.find('\\') == std::string_view::npos ? "'" : "E'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += c;
    quoted += c;
  }
  return quoted += '\'';
}

std::string is_pending(const AdoptShape& shape) {
  const std::string* const column = shape.column("sent");
  switch (column == nullptr ? SentMark::none : shape.mark) {
    case SentMark::none: return "true";
    case SentMark::flag: return quote_column(*column) + " IS NOT TRUE";
    case SentMark::time: return quote_column(*column) + " IS NULL";
    case SentMark::word:
      // The collation "C" makes lower case as to_lower() does; the database's locale may make it
      // otherwise.
      return "(lower(" + quote_column(*column) + "::text COLLATE \"C\") = ANY (" +
             quoted_words(shape.sent) + ")) IS NOT TRUE";
  }
  return "true";
}

std::string marks_sent(const AdoptShape& shape) {
  const std::string column = pg::quote_identifier(*shape.column("sent"));
  switch (shape.mark) {
    case SentMark::none:
    case SentMark::flag: return column + " = true";
    case SentMark::time: return column + " = clock_timestamp()";
    case SentMark::word: return column + " = " + quote_literal(shape.sent_word);
  }
  return column + " = true";
}

std::string write_events(const AdoptTable& table, const AdoptShape& shape, std::string_view source,
                         Places places) {
  const std::string content_type = write_content_type(table, shape);
  const std::string* const occurred = shape.column("occurred_at");
  std::string sql = "SELECT " + quote_column(*shape.column("id")) + "::text AS row_id, " +
                    write_event_id(table, shape) + " AS id, " +
                    write_text(shape, "aggregate_type") + " AS aggregate_type, coalesce(" +
                    write_text(shape, "aggregate_id") + ", '') AS aggregate_id, " +
                    write_text(shape, "event_type") + " AS event_type, ";
  sql += "coalesce(" + write_payload(table, shape) + ", ''::bytea) AS payload, CASE WHEN " +
         write_payload(table, shape) + " IS NOT NULL THEN " + quote_literal(content_type) +
         "::text END AS content_type, coalesce(" + write_headers(table, shape) +
         ", '{}') AS headers, " +
         (occurred == nullptr ? std::string("NULL") : quote_column(*occurred)) +
         "::timestamptz AS occurred_at, ";
  sql += known_json(table, shape);
  if (places == Places::named) {
    const std::string* const place = shape.column("order");
    sql += " AS known_json, " + (place == nullptr ? std::string("NULL") : quote_column(*place)) +
           " AS place, " + quote_column(*shape.column("id")) + " AS id_place FROM ";
  } else {
    sql += " AS known_json FROM ";
  }
  sql += std::string(source) + " n WHERE " + is_pending(shape);
  return sql + " OFFSET 0";  // so that each expression is computed once
}

}  // namespace outbox::store::postgres
