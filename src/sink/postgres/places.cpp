#include "sink/postgres/places.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace outbox::sink::postgres {
namespace {

/// The columns of find_columns().
enum Found : int { kSchema, kName, kCast, kIsText, kIsBytes };

Error no_table(const TableName& table, const std::string& definition) {
  return fail(Errc::not_found, "postgres: there is no table " + table.quoted(),
              "create it, or set postgres.create = true: " + definition)
      .value();
}

}  // namespace

Status Places::learn(const TableName& table, const pg::Rows& found) {
  if (found.empty()) return fail(missing(table));
  Place place;
  for (const Column& column : options_.columns) {
    int row = 0;
    while (row < found.size() && found.bytes(row, kName) != column.name) ++row;
    if (row == found.size()) {
      return fail(
          Errc::not_found,
          "postgres: table " + table.quoted() + " has no column \"" + column.name + "\"",
          "add the column, or say in postgres.columns which ones there are and what they get");
    }
    place.types.push_back({.cast = found.text(row, kCast),
                           .is_text = found.boolean(row, kIsText),
                           .is_bytes = found.boolean(row, kIsBytes)});
  }
  const Column* const id = find_id(options_.columns);
  const TableName full{.schema = found.text(0, kSchema), .table = table.table};
  place.insert = options_.remembers()
                     ? insert_remembered(full, delivered_, options_.columns, place.types)
                     : insert_by_id(full, *id, options_.columns, place.types);
  places_.insert_or_assign(table, std::move(place));
  return {};
}

Error Places::missing(const TableName& table) const {
  return no_table(table, define_table(table, options_.columns, !options_.remembers()));
}

std::vector<Statement> Places::insert(std::span<const Row* const> rows) const {
  std::map<TableName, std::vector<const Row*>> by_table;
  for (const Row* const row : rows) by_table[row->table].push_back(row);
  std::vector<Statement> statements;
  for (const auto& [table, own] : by_table) {
    const Place& place = places_.at(table);
    statements.push_back({.sql = place.insert, .params = parameters(place, own)});
  }
  return statements;
}

pg::Params Places::parameters(const Place& place, std::span<const Row* const> rows) const {
  using Element = pg::ArrayParam::Element;
  pg::Params params;
  if (options_.remembers()) {
    pg::ArrayParam ids(Element::uuid);
    pg::ArrayParam seqs(Element::int8);
    pg::ArrayParam replays(Element::text);
    for (const Row* const row : rows) {
      ids.add(std::string_view(reinterpret_cast<const char*>(row->id.bytes.data()),
                               row->id.bytes.size()));
      seqs.add(row->seq);
      replays.add(row->replay);
    }
    params.emplace_back(options_.subscription);
    params.push_back(ids.take());
    params.push_back(seqs.take());
    params.push_back(replays.take());
  }
  for (std::size_t column = 0; column < place.types.size(); ++column) {
    const ColumnType& type = place.types[column];
    const bool keeps_empty =
        type.is_text || type.is_bytes || options_.columns[column].source != Column::Source::text;
    pg::ArrayParam values(type.is_bytes ? Element::bytea : Element::text);
    for (const Row* const row : rows) {
      const auto& value = row->values[column];
      value && (keeps_empty || !value->empty()) ? values.add(*value) : values.add_null();
    }
    params.push_back(values.take());
  }
  return params;
}

// ---- looking

std::vector<Statement> Look::next() {
  switch (step_) {
    case Step::look:
    case Step::look_again: return {limits(options_.plain.deadline), find_columns(table_, schemas_)};
    case Step::create: return creation();
    case Step::undo: return {rollback()};
    case Step::over: break;
  }
  return {};
}

std::vector<Statement> Look::creation() const {
  TableName full = table_;
  if (full.schema.empty()) full.schema = schemas_.front();
  std::vector<Statement> statements{begin(), limits(options_.plain.deadline), lock_creation()};
  if (kind_ == Kind::target) {
    statements.push_back({define_table(full, options_.columns, !options_.remembers())});
  } else {
    statements.push_back({definition_of_delivered(full)});
    statements.push_back({definition_of_index(full)});
  }
  statements.push_back(commit());
  return statements;
}

void Look::answered(const Answer& answer, Places& places) {
  const bool creating = step_ == Step::create;
  if (step_ == Step::undo) {
    step_ = Step::over;
  } else if (answer.failure) {
    status_ = fail(describe(*answer.failure, "table " + table_.quoted()));
    step_ = creating ? Step::undo : Step::over;
  } else if (creating) {
    step_ = Step::look_again;
  } else {
    found(answer.rows.back(), places);
  }
}

void Look::found(const pg::Rows& rows, Places& places) {
  if (rows.empty() && options_.plain.create && step_ == Step::look) return create();
  status_ = kind_ == Kind::target ? places.learn(table_, rows) : learn_delivered(rows, places);
  step_ = Step::over;
}

void Look::create() {
  step_ = Step::create;
  if (!table_.schema.empty() || !schemas_.empty()) return;
  step_ = Step::over;
  status_ = fail(Errc::not_found,
                 "postgres: no schema of the login's search_path exists, so the table " +
                     table_.quoted() + " cannot be made",
                 "write schema.table");
}

Status Look::learn_delivered(const pg::Rows& rows, Places& places) const {
  if (rows.empty()) {
    return fail(
        no_table(table_, definition_of_delivered(table_) + "; " + definition_of_index(table_)));
  }
  places.set_delivered({.schema = rows.text(0, kSchema), .table = table_.table});
  return {};
}

}  // namespace outbox::sink::postgres
