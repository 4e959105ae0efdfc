#include "store/postgres/adopt_changes.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json.hpp"

namespace outbox::store::postgres {
namespace {

/// What the function depends on of a column's type (adopt_sql.cpp); a column of any other type is
/// read as text.
std::string_view find_kind(std::string_view field, std::string_view type, SentMark mark) {
  const bool json = type == "json" || type == "jsonb";
  if (field == "id") return type == "uuid" ? "uuid" : "text";
  if (field == "payload") return json ? "json" : type == "bytea" ? "bytes" : "text";
  if (field == "headers") return json ? "json" : "text";
  if (field == "occurred_at") return type.starts_with("timestamp") ? "time" : "text";
  if (field == "sent" && mark == SentMark::flag) return type == "boolean" ? "flag" : "text";
  return "text";
}

template <class Is>
const AdoptColumn* find_if(const std::vector<AdoptColumn>& columns, Is is) {
  const auto found = std::find_if(columns.begin(), columns.end(), is);
  return found == columns.end() ? nullptr : &*found;
}

const AdoptColumn* find(const std::vector<AdoptColumn>& columns, std::string_view name) {
  return find_if(columns, [&](const AdoptColumn& one) { return one.name == name; });
}

/// Maps each column that the function reads to its fields; a header has no field. The function does
/// not read the column that gives the order of pending rows.
std::multimap<std::string, std::string> used_columns(const AdoptShape& shape) {
  std::multimap<std::string, std::string> used;
  for (const auto& [field, column] : shape.columns) {
    if (field != "order") used.emplace(column, field);
  }
  for (const auto& [column, name] : shape.headers) used.emplace(column, "");
  return used;
}

std::string listed(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ",") + word;
  return list;
}

}  // namespace

std::string columns_json(const std::vector<AdoptColumn>& columns) {
  nlohmann::json all = nlohmann::json::array();
  for (const AdoptColumn& one : columns)
    all.push_back({{"name", one.name}, {"number", one.number}, {"type", one.type}});
  return write_json(all);
}

std::vector<AdoptColumn> parse_columns(std::string_view json) {
  std::vector<AdoptColumn> columns;
  for (const auto& one : parse_json<nlohmann::json>(json)) {
    AdoptColumn column;
    one.at("name").get_to(column.name);
    one.at("number").get_to(column.number);
    one.at("type").get_to(column.type);
    columns.push_back(std::move(column));
  }
  return columns;
}

std::vector<ColumnChange> changed_columns(const AdoptShape& shape,
                                          const std::vector<AdoptColumn>& then,
                                          const std::vector<AdoptColumn>& now) {
  std::vector<ColumnChange> changes;
  for (const auto& [column, field] : used_columns(shape)) {
    if (!changes.empty() && changes.back().column == column) continue;
    const AdoptColumn* const was = find(then, column);
    if (was == nullptr) continue;  // its former type is not known
    ColumnChange change{.column = column,
                        .type = was->type,
                        .says_sent = field == "sent",
                        .needed = is_needed(field)};
    if (const AdoptColumn* const is = find(now, column)) {
      if (find_kind(field, is->type, shape.mark) == find_kind(field, was->type, shape.mark))
        continue;
      change.type_now = is->type;
    } else if (const AdoptColumn* const renamed = find_if(now, [&](const AdoptColumn& one) {
                 return one.number == was->number && one.type == was->type;
               })) {
      change.renamed_to = renamed->name;
    }
    changes.push_back(std::move(change));
  }
  return changes;
}

std::vector<std::string> options_again(const AdoptShape& shape,
                                       const std::vector<ColumnChange>& changes) {
  std::vector<std::string> words;
  const auto add = [&](const char* option, const std::string& value) {
    words.emplace_back(option);
    words.push_back(value);
  };
  const auto is_gone = [&](const std::string& column) {
    return std::any_of(changes.begin(), changes.end(), [&](const ColumnChange& one) {
      return one.column == column && !one.type_now;
    });
  };
  const AdoptionOptions& said = shape.said;
  for (const auto& [field, column] : said.columns) {
    if (!is_gone(column)) add("--column", field + "=" + column);
  }
  for (const auto& [field, value] : said.values) add("--value", field + "=" + value);
  for (const auto& [column, name] : said.headers) {
    if (!is_gone(column)) add("--header", column + "=" + name);
  }
  if (!said.sent_values.empty()) add("--sent-values", listed(said.sent_values));
  if (!said.pending_values.empty()) add("--pending-values", listed(said.pending_values));
  return words;
}

}  // namespace outbox::store::postgres
