#include "sink/postgres/columns.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.hpp"
#include "event/json_write.hpp"
#include "event/utf8.hpp"

namespace outbox::sink::postgres {
namespace {

constexpr std::array<std::pair<const char*, const char*>, 7> kDefaults{{
    {"headers", "{headers}"},
    {"id", "{id}"},
    {"key", "{key}"},
    {"occurred_at", "{occurred_at}"},
    {"payload", "{body}"},
    {"seq", "{seq}"},
    {"type", "{event_type}"},
}};

constexpr std::array<std::pair<std::string_view, Column::Source>, 3> kWhole{{
    {"{body}", Column::Source::body},
    {"{headers}", Column::Source::headers},
    {"{key}", Column::Source::key},
}};

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kDefinitions{{
    {"{id}", "uuid NOT NULL"},
    {"{seq}", "bigint NOT NULL"},
    {"{occurred_at}", "timestamptz NOT NULL"},
    {"{created_at}", "timestamptz NOT NULL"},
    {"{event_type}", "text NOT NULL"},
    {"{body}", "jsonb"},
    {"{headers}", "jsonb NOT NULL"},
}};

std::string_view make_json(std::span<const HeaderView> headers, event::Arena& arena) {
  event::ArenaText json(arena);
  json.push_back('{');
  bool first = true;
  for (const HeaderView& header : headers) {
    if (header.absent) continue;
    if (!std::exchange(first, false)) json.push_back(',');
    event::append_json_string(json, header.name);
    json.push_back(':');
    event::append_json_string(json, header.value);
  }
  json.push_back('}');
  return json.finish();
}

Status check_column_name(std::string_view name) {
  constexpr std::size_t kMostBytes = 63;
  if (name.empty() || name.size() > kMostBytes || !event::is_utf8(name))
    return fail(Errc::invalid_argument, "is not the name of a column", "1 to 63 bytes of UTF-8");
  return {};
}

void read_column(std::string name, const std::string& text, std::vector<Column>& columns,
                 FieldErrors& errors) {
  const std::string field = "postgres." + std::string(kColumnPrefix) + name;
  if (const Status legal = check_column_name(name); !legal) return errors.add(field, legal.error());
  Column column{.name = std::move(name), .written = text};
  const auto whole = std::find_if(kWhole.begin(), kWhole.end(),
                                  [&](const auto& one) { return one.first == text; });
  if (whole != kWhole.end()) {
    column.source = whole->second;
  } else {
    auto made = format::Template::compile(field, text);
    if (!made) {
      made.error()
          .hint.append(made.error().hint.empty() ? "" : "; ")
          .append("alone in a column also {body}, {headers}, {key}");
      return errors.add(made.error());
    }
    column.text = std::move(*made);
  }
  columns.push_back(std::move(column));
}

}  // namespace

std::optional<std::string_view> Column::value(const Message& message, event::Arena& arena) const {
  switch (source) {
    case Source::body:
      if (message.tombstone) return std::nullopt;
      return message.body;
    case Source::headers: return make_json(message.headers, arena);
    case Source::key: return message.key;
    case Source::text: return text.render(*message.event, arena);
  }
  return std::nullopt;
}

std::string_view Column::definition() const {
  const auto found = std::find_if(kDefinitions.begin(), kDefinitions.end(),
                                  [this](const auto& one) { return one.first == written; });
  return found == kDefinitions.end() ? "text" : found->second;
}

std::vector<Column> read_columns(const Texts& settings, FieldErrors& errors) {
  std::vector<Column> columns;
  bool given = false;
  for (const auto& [name, text] : settings) {
    if (!name.starts_with(kColumnPrefix)) continue;
    given = true;
    read_column(name.substr(kColumnPrefix.size()), text, columns, errors);
  }
  if (given) return columns;
  for (const auto& [name, text] : kDefaults) read_column(name, text, columns, errors);
  return columns;
}

const Column* find_id(std::span<const Column> columns) {
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [](const Column& column) { return column.is_id(); });
  return found == columns.end() ? nullptr : &*found;
}

}  // namespace outbox::sink::postgres
