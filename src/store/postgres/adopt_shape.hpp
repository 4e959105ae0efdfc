// Which column of an adopted table is what: recognised by its name and type, or said by a person.
// Pure.
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

/// A trigger reads a virtual column as NULL.
enum class Generated : std::uint8_t { no, stored, by_reading };

struct AdoptColumn {
  std::string name;
  std::string type;  ///< "jsonb", "character varying"; of a domain what it is made of.
  bool is_enum{false};
  bool unique{false};   ///< Alone or, in a partitioned table, with its key; without null.
  bool repeats{false};  ///< The same value may be in several partitions.
  std::vector<std::string> labels{};  ///< Of an enum.
  std::int32_t number{0};             ///< Stays when it is renamed.
  Generated generated{Generated::no};
  /// Its type, and what a cast of it runs, are anybody's: not of the server or an extension.
  bool foreign{false};
};

struct AdoptTable {
  std::string name;  ///< Quoted, with its schema.
  /// Its first name, of which ids are made. It stays when the table is renamed: the trigger and the
  /// copy must give a row the same id.
  std::string id_name{};
  std::string schema;  ///< Of the outbox, quoted.
  bool partitioned{false};
  std::vector<AdoptColumn> columns;

  /// Null: there is none.
  [[nodiscard]] const AdoptColumn* find(std::string_view column) const;
};

/// How a table says what was sent.
enum class SentMark : std::uint8_t { none, flag, time, word };

struct AdoptShape {
  std::map<std::string, std::string> columns{};  ///< Field to column.
  std::map<std::string, std::string> values{};
  std::vector<std::pair<std::string, std::string>> headers{};
  SentMark mark{SentMark::none};
  std::vector<std::string> sent{};     ///< Words that mean sent, in small letters.
  std::vector<std::string> pending{};  ///< Words that mean not sent, in small letters.
  std::string sent_word{};             ///< What undo writes.
  Backlog backlog{Backlog::none};
  bool debezium{false};
  AdoptionOptions said{};  ///< Without the backlog: what a person must say again to have the same.

  [[nodiscard]] const std::string* column(const std::string& field) const;
};

/// Of whole numbers.
[[nodiscard]] bool is_whole(const AdoptColumn& column);
/// Whether a word of a status column is known to mean sent, or not sent.
[[nodiscard]] bool means_sent(const AdoptShape& shape, std::string_view word);
[[nodiscard]] bool means_pending(const AdoptShape& shape, std::string_view word);

/// Whether a trigger can read the columns, and the mark be written.
[[nodiscard]] Status check_columns(const AdoptTable& table, const AdoptShape& shape);
/// Whether no event can be made without this field.
[[nodiscard]] bool is_needed(std::string_view field);
/// Leaves out columns that are gone, but those that are needed. While old rows are copied their
/// order is needed, too.
void leave_out_gone(AdoptShape& shape, const AdoptTable& table, bool copying);

[[nodiscard]] Result<AdoptShape> recognise(const AdoptTable& table, const AdoptionOptions& options);
/// Field, and where it comes from; for people.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> described(const AdoptTable& table,
                                                                         const AdoptShape& shape);
[[nodiscard]] std::vector<std::string> unused_columns(const AdoptTable& table,
                                                      const AdoptShape& shape);

[[nodiscard]] std::string to_json(const AdoptShape& shape);
[[nodiscard]] AdoptShape adopt_shape_of(std::string_view json);

// SQL, in which `n` stands for the row.

/// Whether events_of() also gives `place` and `id_place`, by which the rows are ordered.
enum class Places : std::uint8_t { left_out, named };
/// A SELECT of the event of each pending row of `source`: row_id, id, aggregate_type, aggregate_id,
/// event_type, payload, content_type, headers, occurred_at, known_json.
[[nodiscard]] std::string events_of(const AdoptTable& table, const AdoptShape& shape,
                                    std::string_view source, Places places);
/// Whether a row was not sent yet.
[[nodiscard]] std::string is_pending(const AdoptShape& shape);
/// "column = value" of an UPDATE that marks a row as sent.
[[nodiscard]] std::string marks_sent(const AdoptShape& shape);
[[nodiscard]] std::string quote_literal(std::string_view text);

}  // namespace outbox::store::postgres
