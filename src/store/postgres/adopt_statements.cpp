#include "store/postgres/adopt_statements.hpp"

#include <fmt/format.h>

#include "pg/identifier.hpp"

namespace outbox::store::postgres {
namespace {

constexpr const char* kEvent =
    "id, aggregate_type, aggregate_id, event_type, payload, content_type, headers, occurred_at";

/// Checks each event and writes it into `target`. `more` names columns that come before those of
/// the event, and `values` gives their values.
std::string insert(const AdoptTable& table, const std::string& target, const std::string& more,
                   const std::string& values, const std::string& events) {
  return fmt::format(R"(INSERT INTO {0}.{1} ({2}{3})
SELECT {4}e.id, CASE WHEN {0}.adopt_is_plain(e.aggregate_type, e.aggregate_id, e.event_type, e.payload, e.headers, e.occurred_at, e.known_json)
  THEN e.aggregate_type
  ELSE {0}.adopt_check(e.row_id, e.aggregate_type, e.aggregate_id, e.event_type, e.payload, e.content_type, e.headers, e.occurred_at) END,
  e.aggregate_id, e.event_type, e.payload, e.content_type, e.headers, e.occurred_at
FROM ({5}) e)",
                     table.schema, target, more, kEvent, values, events);
}

std::string insert_into_log(const AdoptTable& table, const std::string& events) {
  return insert(table, "event_in", "", "", events);
}

}  // namespace

std::string adopt_function(const AdoptTable& table, AdoptMode mode, const std::string& adoption) {
  const char* const kind = mode == AdoptMode::stage ? "adopt_stage_" : "adopt_forward_";
  return table.schema + "." + pg::quote_identifier(kind + adoption);
}

Query create_adopt_function(const AdoptTable& table, const AdoptShape& shape, AdoptMode mode,
                            const std::string& adoption) {
  const std::string events = write_events(
      table, shape, table.partitioned ? "(SELECT NEW.*)" : "outbox_new_rows", Places::left_out);
  const std::string statement =
      mode == AdoptMode::stage ? insert(table, "adopt_stage", "adoption, ", adoption + ", ", events)
                               : insert_into_log(table, events);
  return {.what = "create the trigger's function",
          // AdoptSteps::transaction() has the same settings, so that trigger and copy make the same
          // event of a row.
          .sql = fmt::format(
              R"(CREATE OR REPLACE FUNCTION {}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' SET timezone = 'UTC' SET intervalstyle = 'postgres'
SET bytea_output = 'hex' SET extra_float_digits = 1 AS {})",
              adopt_function(table, mode, adoption),
              quote_literal("\nBEGIN\n" + statement + ";\nRETURN NULL;\nEND\n")),
          .handle = {}};
}

Query create_adopt_trigger(const AdoptTable& table, AdoptMode mode, const std::string& adoption) {
  return {.what = "create the trigger on " + table.name,
          .sql = fmt::format(
              "CREATE {}TRIGGER outbox_adopt AFTER INSERT ON {} {} EXECUTE FUNCTION {}()",
              mode == AdoptMode::stage ? "" : "OR REPLACE ", table.name,
              table.partitioned ? "FOR EACH ROW"
                                : "REFERENCING NEW TABLE AS outbox_new_rows FOR EACH STATEMENT",
              adopt_function(table, mode, adoption)),
          .handle = {}};
}

Query copy_backlog(const AdoptTable& table, const AdoptShape& shape, const std::string& adoption) {
  // The id of a row is computed once, and compared, before the rows are put in order.
  const std::string rows = fmt::format(
      "SELECT * FROM ({2}) r WHERE NOT EXISTS (SELECT FROM {0}.adopt_stage s WHERE s.adoption = {1} AND s.id = r.id) "
      "ORDER BY r.place, r.id_place OFFSET 0",
      table.schema, adoption, write_events(table, shape, table.name, Places::named));
  return {.what = "copy the pending rows of " + table.name,
          .sql = insert_into_log(table, rows),
          .handle = {}};
}

Query check_backlog(const AdoptTable& table, const AdoptShape& shape) {
  return {
      .what = "look at the pending rows of " + table.name,
      .sql = fmt::format(R"(
SELECT count(*), count(p.problem), coalesce(array_to_json((array_agg(p.problem) FILTER (WHERE p.problem IS NOT NULL))[1:10])::text, '[]')
FROM (SELECT CASE WHEN {0}.adopt_is_plain(e.aggregate_type, e.aggregate_id, e.event_type, e.payload, e.headers, e.occurred_at, e.known_json)
        THEN NULL
        ELSE {0}.adopt_problem(e.row_id, e.aggregate_type, e.aggregate_id, e.event_type, e.payload, e.content_type, e.headers, e.occurred_at)
        END AS problem FROM ({1}) e) p)",
                         table.schema, write_events(table, shape, table.name, Places::left_out)),
      .handle = {}};
}

Query repeated_ids(const AdoptTable& table, const AdoptShape& shape) {
  return {
      .what = "look for ids that are there twice",
      .sql = fmt::format("SELECT n.{1}::text FROM {0} n GROUP BY n.{1} HAVING count(*) > 1 LIMIT 1",
                         table.name, pg::quote_identifier(*shape.column("id"))),
      .handle = {}};
}

Query words_in_use(const AdoptTable& table, const AdoptShape& shape) {
  return {.what = "read the words of a status column",
          .sql = fmt::format("SELECT n.{1}::text, count(*) FROM {0} n WHERE n.{1} IS NOT NULL "
                             "GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 100",
                             table.name, pg::quote_identifier(*shape.column("sent"))),
          .handle = {}};
}

Query mark_as_sent(const AdoptTable& table, const AdoptShape& shape) {
  return {.what = "mark the rows of " + table.name + " as sent",
          .sql = fmt::format("UPDATE {} n SET {} WHERE {}", table.name, marks_sent(shape),
                             is_pending(shape)),
          .handle = {}};
}

}  // namespace outbox::store::postgres
