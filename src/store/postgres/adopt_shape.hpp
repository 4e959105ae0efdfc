// Decides which column of an adopted table has which role. A column is recognised by its name and
// type, or a person names it. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <outbox/error.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/adoption.hpp"

namespace outbox::store::postgres {

/// How a generated column is computed. A trigger reads a column that is computed by reading (a
/// virtual one) as NULL.
enum class Generated : std::uint8_t { no, stored, by_reading };

struct AdoptColumn {
  std::string name;
  std::string type;  ///< Such as "jsonb" or "character varying"; for a domain, its base type.
  bool is_enum{false};
  bool unique{false};   ///< Not null and unique alone or, in a partitioned table, together with the
                        ///< partition key.
  bool repeats{false};  ///< Several partitions may have the same value.
  std::vector<std::string> labels{};  ///< The labels of an enum.
  std::int32_t number{0};             ///< It stays the same when the column is renamed.
  Generated generated{Generated::no};
  /// Its type belongs to neither the server nor an extension, so that anybody may have defined what
  /// a cast of it runs.
  bool foreign{false};
};

struct AdoptTable {
  std::string name;  ///< The name, quoted, with its schema.
  /// The table's first name, from which ids are made. It stays when the table is renamed: the
  /// trigger and the copy must give a row the same id.
  std::string id_name{};
  std::string schema;  ///< The schema of the outbox, quoted.
  bool partitioned{false};
  std::vector<AdoptColumn> columns;

  /// Null if there is no such column.
  [[nodiscard]] const AdoptColumn* find(std::string_view column) const;
};

/// How a table records which rows were sent.
enum class SentMark : std::uint8_t { none, flag, time, word };

struct AdoptShape {
  std::map<std::string, std::string> columns{};  ///< From field to column.
  std::map<std::string, std::string> values{};
  std::vector<std::pair<std::string, std::string>> headers{};
  SentMark mark{SentMark::none};
  std::vector<std::string> sent{};     ///< Words that mean sent, in lower case.
  std::vector<std::string> pending{};  ///< Words that mean not sent, in lower case.
  std::string sent_word{};             ///< The word that undo writes.
  Backlog backlog{Backlog::none};
  bool debezium{false};
  AdoptionOptions said{};  ///< What a person must say again to get the same shape; without the
                           ///< backlog.

  [[nodiscard]] const std::string* column(const std::string& field) const;
};

/// Whether the column's type is an integer type.
[[nodiscard]] bool is_whole(const AdoptColumn& column);
/// Whether a word of a status column is known to mean that the row was sent, or was not sent.
[[nodiscard]] bool means_sent(const AdoptShape& shape, std::string_view word);
[[nodiscard]] bool means_pending(const AdoptShape& shape, std::string_view word);

/// Whether a trigger can read the columns, and whether the mark can be written.
[[nodiscard]] Status check_columns(const AdoptTable& table, const AdoptShape& shape);
/// Whether no event can be made without this field.
[[nodiscard]] bool is_needed(std::string_view field);
/// Leaves out columns that are gone, but not those that are needed. While old rows are copied, the
/// column of their order is needed, too.
void leave_out_gone(AdoptShape& shape, const AdoptTable& table, bool copying);

[[nodiscard]] Result<AdoptShape> recognise(const AdoptTable& table, const AdoptionOptions& options);
/// Each field and where it comes from, as text for people.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> described(const AdoptTable& table,
                                                                         const AdoptShape& shape);
[[nodiscard]] std::vector<std::string> unused_columns(const AdoptTable& table,
                                                      const AdoptShape& shape);

[[nodiscard]] std::string to_json(const AdoptShape& shape);
[[nodiscard]] AdoptShape parse_adopt_shape(std::string_view json);

// The functions below return SQL in which `n` stands for the row.

/// Whether write_events() also gives `place` and `id_place`, by which the rows are ordered.
enum class Places : std::uint8_t { left_out, named };
/// A SELECT of the event of each pending row of `source`: row_id, id, aggregate_type, aggregate_id,
/// event_type, payload, content_type, headers, occurred_at, known_json.
[[nodiscard]] std::string write_events(const AdoptTable& table, const AdoptShape& shape,
                                       std::string_view source, Places places);
/// Whether a row was not sent yet.
[[nodiscard]] std::string is_pending(const AdoptShape& shape);
/// "column = value" of an UPDATE that marks a row as sent.
[[nodiscard]] std::string marks_sent(const AdoptShape& shape);
[[nodiscard]] std::string quote_literal(std::string_view text);

}  // namespace outbox::store::postgres
