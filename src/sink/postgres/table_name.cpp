#include "sink/postgres/table_name.hpp"

#include "base/error.hpp"
#include "base/text.hpp"
#include "event/utf8.hpp"
#include "pg/identifier.hpp"

namespace outbox::sink::postgres {
namespace {

/// The server's NAMEDATALEN - 1.
constexpr std::size_t kMostBytes = 63;

/// The first dot outside of braces.
std::size_t find_dot(std::string_view text) {
  bool inside = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool doubled = at + 1 < text.size() && text[at + 1] == text[at];
    if (!inside && doubled && (text[at] == '{' || text[at] == '}')) {
      ++at;
    } else if (text[at] == '{') {
      inside = true;
    } else if (text[at] == '}') {
      inside = false;
    } else if (text[at] == '.' && !inside) {
      return at;
    }
  }
  return std::string_view::npos;
}

Status check_part(std::string_view part, const TableName& whole) {
  constexpr const char* kHint =
      "the name comes from postgres.table: give empty fields a value in that template "
      "({header:tenant|default:all}), and keep names short";
  const auto refuse = [&](Errc code, const char* why) {
    return fail(code, "postgres: " + in_quotes(whole.shown()) + " cannot be a table: " + why,
                kHint);
  };
  if (part.empty()) return refuse(Errc::invalid_argument, "a part of the name is empty");
  if (part.size() > kMostBytes)
    return refuse(Errc::too_large, "a part of the name has more than 63 bytes");
  if (part.find('\0') != std::string_view::npos || !event::is_utf8(part))
    return refuse(Errc::invalid_argument, "the name is not UTF-8, or has a zero byte");
  return {};
}

}  // namespace

std::string TableName::quoted() const {
  const std::string name = pg::quote_identifier(table);
  return schema.empty() ? name : pg::quote_identifier(schema) + "." + name;
}

std::string TableName::shown() const { return schema.empty() ? table : schema + "." + table; }

Status check_name(const TableName& name) {
  if (!name.schema.empty()) {
    OUTBOX_TRY(check_part(name.schema, name));
  }
  return check_part(name.table, name);
}

Result<TableTemplate> TableTemplate::compile(std::string_view field, std::string_view text) {
  const std::size_t dot = find_dot(text);
  if (dot == std::string_view::npos) {
    OUTBOX_TRY(format::Template table, format::Template::compile(field, text));
    return TableTemplate(std::nullopt, std::move(table));
  }
  if (dot == 0 || dot + 1 == text.size()) {
    return fail(Errc::invalid_argument, std::string(field) + ": has nothing on one side of its dot",
                "write schema.table, or table alone");
  }
  OUTBOX_TRY(format::Template schema, format::Template::compile(field, text.substr(0, dot)));
  OUTBOX_TRY(format::Template table, format::Template::compile(field, text.substr(dot + 1)));
  return TableTemplate(std::move(schema), std::move(table));
}

TableName TableTemplate::render(const EventView& event, event::Arena& arena) const {
  TableName name;
  // A schema that a field left empty must not become "any schema".
  if (schema_) {
    name.schema = schema_->render(event, arena);
    if (name.schema.empty()) return {};
  }
  name.table = table_.render(event, arena);
  return name;
}

std::optional<TableName> TableTemplate::fixed() const {
  auto table = table_.fixed();
  if (!table) return std::nullopt;
  if (!schema_) return TableName{.schema = {}, .table = std::move(*table)};
  auto schema = schema_->fixed();
  if (!schema) return std::nullopt;
  return TableName{.schema = std::move(*schema), .table = std::move(*table)};
}

}  // namespace outbox::sink::postgres
