// Statements for what the outbox consists of (store/diagnosis.hpp, docs/design/doctor.md).
#pragma once

#include <string_view>

namespace outbox::store::sqlite::query {

// What the outbox consists of: of its tables and views everything that has a text. A list that another program made begins otherwise.
inline constexpr std::string_view kFoundDefinitions = R"(/* look at the schema */
SELECT '', 'made by', 'outbox 1', '' UNION ALL SELECT * FROM (
SELECT coalesce(t.type || ' ' || t.name, s.type || ' ' || s.name),
       CASE WHEN t.name IS NULL THEN '' ELSE CASE WHEN s.sql LIKE 'CREATE UNIQUE%' THEN 'unique ' WHEN s.type = 'index' AND s.sql LIKE '% WHERE %' THEN 'partial '
         ELSE '' END || s.type || ' ' || s.name END,
       CASE s.type WHEN 'table' THEN '' ELSE 'DROP ' || upper(s.type) || ' IF EXISTS "' || s.name || '"; ' END || s.sql, 'DROP ' || upper(s.type) || ' "' || s.name || '"'
FROM sqlite_master s LEFT JOIN sqlite_master t ON s.type NOT IN ('table', 'view') AND t.type IN ('table', 'view') AND t.name = s.tbl_name
WHERE s.sql IS NOT NULL AND s.tbl_name LIKE 'outbox!_%' ESCAPE '!' ORDER BY s.rowid))";
inline constexpr std::string_view kWantedDefinitions =
    "/* read what the schema should be */ SELECT object, part, makes, undoes FROM outbox_definition ORDER BY place";
inline constexpr std::string_view kForgetDefinitions =
    "/* forget definitions */ DELETE FROM outbox_definition";
inline constexpr std::string_view kStoreDefinition =
    "/* store definition */ INSERT INTO outbox_definition (object, part, makes, undoes) VALUES (?1, ?2, ?3, ?4)";

}  // namespace outbox::store::sqlite::query
