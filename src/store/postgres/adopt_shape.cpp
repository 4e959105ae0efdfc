#include "store/postgres/adopt_shape.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace outbox::store::postgres {
namespace {

using Names = std::span<const std::string_view>;

// The names of columns, without case and underscores. The first name that fits is chosen.
constexpr std::array<std::string_view, 4> kIds{"eventid", "messageid", "uuid", "id"};
constexpr std::array<std::string_view, 6> kAggregateTypes{
    "aggregatetype", "entitytype", "streamtype", "topic", "stream", "aggregate"};
constexpr std::array<std::string_view, 6> kAggregateIds{"aggregateid",  "entityid",   "streamid",
                                                        "partitionkey", "messagekey", "key"};
constexpr std::array<std::string_view, 5> kEventTypes{"eventtype", "type", "eventname",
                                                      "messagetype", "name"};
constexpr std::array<std::string_view, 7> kPayloads{"payload", "eventdata", "data", "body",
                                                    "content", "message",   "event"};
constexpr std::array<std::string_view, 2> kHeaderColumns{"headers", "metadata"};
constexpr std::array<std::string_view, 4> kSequences{"seq", "sequence", "sequencenumber",
                                                     "position"};
constexpr std::array<std::string_view, 9> kTimes{"occurredat", "occurredon", "eventtime",
                                                 "createdat",  "createdon",  "created",
                                                 "timestamp",  "insertedat", "inserted"};
constexpr std::array<std::string_view, 9> kSentTimes{"sentat",       "publishedat", "processedat",
                                                     "dispatchedat", "deliveredat", "processedon",
                                                     "senton",       "publishedon", "completedat"};
constexpr std::array<std::string_view, 8> kSentFlags{"sent",        "published",  "processed",
                                                     "dispatched",  "delivered",  "issent",
                                                     "ispublished", "isprocessed"};
constexpr std::array<std::string_view, 2> kStatus{"status", "state"};

constexpr std::array<std::string_view, 12> kSentWords{
    "sent",      "published", "processed", "done",       "delivered", "complete",
    "completed", "success",   "succeeded", "dispatched", "acked",     "finished"};
constexpr std::array<std::string_view, 8> kPendingWords{
    "pending", "new", "created", "unsent", "queued", "ready", "waiting", "unpublished"};

constexpr std::array<std::string_view, 9> kFields{"id",         "aggregate_type", "aggregate_id",
                                                  "event_type", "payload",        "headers",
                                                  "order",      "occurred_at",    "sent"};
constexpr std::array<std::string_view, 3> kValues{"aggregate_type", "event_type", "content_type"};

std::string plain_name(std::string_view name) {
  std::string plain = to_lower(name);
  std::erase(plain, '_');
  return plain;
}

bool contains(Names names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_time(const AdoptColumn& column) { return column.type.starts_with("timestamp"); }
bool is_flag(const AdoptColumn& column) { return column.type == "boolean"; }
bool is_json(const AdoptColumn& column) { return column.type == "json" || column.type == "jsonb"; }
bool is_word(const AdoptColumn& column) {
  return column.is_enum || column.type == "text" || column.type.starts_with("character") ||
         is_whole(column);
}
bool any(const AdoptColumn& /*column*/) { return true; }

using Fits = bool (*)(const AdoptColumn&);

/// Finds the columns of one table.
class Recognition {
 public:
  Recognition(const AdoptTable& table, const AdoptionOptions& options)
      : table_(table), options_(options) {}

  Result<AdoptShape> run() {
    OUTBOX_TRY(check_options());
    shape_.values = options_.values;
    shape_.headers = options_.headers;
    shape_.said = options_;
    shape_.said.backlog = Backlog::by_shape;
    OUTBOX_TRY(find_id());
    OUTBOX_TRY(find_event());
    OUTBOX_TRY(find_mark());
    OUTBOX_TRY(find_backlog());
    OUTBOX_TRY(check_columns(table_, shape_));
    return std::move(shape_);
  }

 private:
  [[nodiscard]] Status check_options() const {
    for (const auto& [field, column] : options_.columns) {
      if (!contains(kFields, field))
        return fail(Errc::invalid_argument, "--column " + field + "=...: there is no such field",
                    "fields: " + listed(kFields));
      if (!column.empty() && table_.find(column) == nullptr) return no_column(column);
    }
    for (const auto& [field, value] : options_.values) {
      if (!contains(kValues, field))
        return fail(Errc::invalid_argument, "--value " + field + "=...: there is no such field",
                    "fields: " + listed(kValues));
      if (options_.columns.contains(field))
        return fail(Errc::invalid_argument, field + " is given twice",
                    "--column or --value, one of them");
    }
    for (const auto& [column, name] : options_.headers) {
      if (table_.find(column) == nullptr) return no_column(column);
    }
    return {};
  }

  [[nodiscard]] tl::unexpected<Error> no_column(const std::string& column) const {
    std::string all;
    for (const AdoptColumn& one : table_.columns) all += (all.empty() ? "" : ", ") + one.name;
    return fail(Errc::not_found, "table " + table_.name + " has no column " + in_quotes(column),
                "it has " + all);
  }

  [[nodiscard]] static std::string listed(Names names) {
    std::string text;
    for (const auto name : names) text += (text.empty() ? "" : ", ") + std::string(name);
    return text;
  }

  /// The column that a person named for the field, or else the first column with one of the names.
  const AdoptColumn* choose(const std::string& field, Names names, Fits fits = any) {
    const AdoptColumn* found = nullptr;
    if (const auto said = options_.columns.find(field); said != options_.columns.end()) {
      found = table_.find(said->second);
    } else if (!shape_.values.contains(field)) {
      for (const auto name : names) {
        for (const AdoptColumn& column : table_.columns) {
          if (found == nullptr && plain_name(column.name) == name && fits(column)) found = &column;
        }
      }
    }
    if (found != nullptr) shape_.columns[field] = found->name;
    return found;
  }

  Status find_id() {
    const AdoptColumn* const found =
        choose("id", kIds, [](const AdoptColumn& column) { return column.unique; });
    const std::string hint =
        "the event's id must have a primary key or a unique index of its own, without null: "
        "--column id=COLUMN names it";
    if (found == nullptr)
      return fail(Errc::invalid_argument, "table " + table_.name + ": no column has a unique id",
                  hint);
    if (!found->unique)
      return fail(Errc::invalid_argument,
                  "table " + table_.name + ": column " + in_quotes(found->name) + " is not unique",
                  hint);
    return {};
  }

  Status find_event() {
    (void)choose("payload", kPayloads);
    (void)choose("aggregate_type", kAggregateTypes);
    (void)choose("aggregate_id", kAggregateIds);
    (void)choose("event_type", kEventTypes);
    (void)choose("headers", kHeaderColumns, is_json);
    (void)choose("occurred_at", kTimes, is_time);
    if (shape_.column("payload") == nullptr) return missing("payload", "");
    for (const char* const field : {"aggregate_type", "event_type"}) {
      if (shape_.column(field) == nullptr && !shape_.values.contains(field))
        return missing(field, std::string(", or --value ") + field + "=TEXT for all rows");
    }
    if (shape_.column("aggregate_id") == nullptr && !options_.columns.contains("aggregate_id"))
      return missing("aggregate_id",
                     ", or --column aggregate_id= for events without a key, which have no order");
    if (const std::string* const time = shape_.column("occurred_at");
        time != nullptr && !is_time(*table_.find(*time)))
      return fail(Errc::invalid_argument, "column " + in_quotes(*time) + " is no timestamp",
                  "leave it out: --column occurred_at=");
    return {};
  }

  [[nodiscard]] Status missing(const std::string& field, const std::string& more) const {
    return fail(Errc::invalid_argument,
                "table " + table_.name + ": no column was recognised as " + field,
                "--column " + field + "=COLUMN names it" + more);
  }

  Status find_mark() {
    const bool said = options_.columns.contains("sent");
    const AdoptColumn* column = choose("sent", kSentTimes, is_time);
    if (column == nullptr && !said) column = choose("sent", kSentFlags, is_flag);
    if (column == nullptr && !said) column = choose("sent", kStatus, is_word);
    if (column == nullptr) return {};
    for (const auto& word : options_.sent_values) shape_.sent.push_back(to_lower(word));
    for (const auto& word : options_.pending_values) shape_.pending.push_back(to_lower(word));
    if (is_flag(*column)) {
      shape_.mark = SentMark::flag;
    } else if (is_time(*column) || column->type == "date") {
      shape_.mark = SentMark::time;
    } else if (is_word(*column)) {
      shape_.mark = SentMark::word;
      for (const auto word : kSentWords) {
        if (!contains(shape_.pending, word) && !contains(shape_.sent, word))
          shape_.sent.emplace_back(word);
      }
      find_sent_word(*column);
    } else {
      return fail(Errc::unsupported,
                  "column " + in_quotes(column->name) + " has the type " + column->type +
                      ", which does not say what was sent",
                  "a boolean, a timestamp, a text, a number or an enum does");
    }
    const bool words = !options_.sent_values.empty() || !options_.pending_values.empty();
    if (words && shape_.mark != SentMark::word)
      return fail(Errc::invalid_argument,
                  "column " + in_quotes(column->name) + " is no status column",
                  "leave --sent-values and --pending-values out");
    return {};
  }

  void find_sent_word(const AdoptColumn& column) {
    if (!options_.sent_values.empty()) {
      shape_.sent_word = options_.sent_values.front();
      return;
    }
    for (const std::string& label : column.labels) {
      if (shape_.sent_word.empty() && means_sent(shape_, label)) shape_.sent_word = label;
    }
  }

  Status find_backlog() {
    const auto has = [&](std::string_view name) {
      return std::any_of(table_.columns.begin(), table_.columns.end(),
                         [&](const AdoptColumn& column) { return to_lower(column.name) == name; });
    };
    shape_.debezium =
        shape_.mark == SentMark::none && has("aggregatetype") && has("aggregateid") && has("type");
    shape_.backlog = options_.backlog;
    if (shape_.backlog == Backlog::by_shape)
      shape_.backlog = shape_.debezium ? Backlog::none : Backlog::pending;
    if (shape_.backlog == Backlog::all && shape_.mark != SentMark::none)
      return fail(Errc::invalid_argument,
                  "--backlog all would send again what column " +
                      in_quotes(*shape_.column("sent")) + " says was sent",
                  "leave it out: what is pending is taken over");
    if (shape_.backlog == Backlog::pending && shape_.mark == SentMark::none)
      return fail(
          Errc::invalid_argument, "table " + table_.name + ": no column says which rows were sent",
          "--column sent=COLUMN names it; --backlog all if every row in it is still to be sent, none if no row is");
    if (const std::string* const id = shape_.column("id"); is_whole(*table_.find(*id))) {
      (void)choose("order", kSequences, is_whole);
      if (shape_.column("order") == nullptr) shape_.columns["order"] = *id;
      return {};
    }
    if (choose("order", kSequences, is_whole) == nullptr) (void)choose_serial_or_time();
    if (shape_.column("order") == nullptr && shape_.backlog != Backlog::none)
      return fail(Errc::invalid_argument,
                  "table " + table_.name + ": no column gives the order of its rows",
                  "--column order=COLUMN names a sequence or a time of creation");
    return {};
  }

  const AdoptColumn* choose_serial_or_time() {
    constexpr std::array<std::string_view, 1> ids{"id"};
    const AdoptColumn* const serial = choose("order", ids, is_whole);
    return serial != nullptr ? serial : choose("order", kTimes, is_time);
  }

  const AdoptTable& table_;
  const AdoptionOptions& options_;
  AdoptShape shape_;
};

Status check_readable(const AdoptColumn& column, const std::string& instead) {
  if (column.foreign)
    return fail(
        Errc::unsupported,
        "column " + in_quotes(column.name) + " has the type " + column.type +
            ": its cast to text could run anything with the rights of the owner of the log",
        "types of the server and of extensions, domains over them, and enums without a cast "
        "of their own can be read; " +
            instead);
  if (column.generated == Generated::by_reading)
    return fail(Errc::unsupported,
                "column " + in_quotes(column.name) +
                    " is generated when it is read: a trigger finds NULL in it",
                "make it STORED, or " + instead);
  return {};
}

}  // namespace

bool is_whole(const AdoptColumn& column) {
  return column.type == "bigint" || column.type == "integer" || column.type == "smallint";
}

const AdoptColumn* AdoptTable::find(std::string_view column) const {
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const AdoptColumn& one) { return one.name == column; });
  return found == columns.end() ? nullptr : &*found;
}

const std::string* AdoptShape::column(const std::string& field) const {
  const auto found = columns.find(field);
  return found == columns.end() ? nullptr : &found->second;
}

bool means_sent(const AdoptShape& shape, std::string_view word) {
  return contains(shape.sent, to_lower(word));
}

bool means_pending(const AdoptShape& shape, std::string_view word) {
  const std::string small = to_lower(word);
  return contains(shape.pending, small) ||
         (!contains(shape.sent, small) && contains(kPendingWords, small));
}

Status check_columns(const AdoptTable& table, const AdoptShape& shape) {
  for (const auto& [field, name] : shape.columns) {
    const AdoptColumn* const column = table.find(name);
    if (column == nullptr) continue;
    if (field == "sent" && column->generated != Generated::no)
      return fail(
          Errc::unsupported,
          "column " + in_quotes(name) + " is generated: rows cannot be marked as sent in it",
          "--column sent=COLUMN names the one that the job which sends writes to");
    OUTBOX_TRY(check_readable(*column, "--column " + field + "= leaves it out"));
  }
  for (const auto& [name, header] : shape.headers) {
    const AdoptColumn* const column = table.find(name);
    if (column == nullptr) continue;
    OUTBOX_TRY(check_readable(*column, "leave --header " + name + " out"));
  }
  return {};
}

bool is_needed(std::string_view field) {
  constexpr std::array<std::string_view, 5> needed{"id", "aggregate_type", "aggregate_id",
                                                   "event_type", "payload"};
  return contains(needed, field);
}

void leave_out_gone(AdoptShape& shape, const AdoptTable& table, bool copying) {
  std::erase_if(shape.columns, [&](const auto& pair) {
    const auto& [field, column] = pair;
    if (is_needed(field) || field == "sent" || (copying && field == "order")) return false;
    return table.find(column) == nullptr;
  });
  std::erase_if(shape.headers, [&](const auto& pair) { return table.find(pair.first) == nullptr; });
}

Result<AdoptShape> recognise(const AdoptTable& table, const AdoptionOptions& options) {
  return Recognition(table, options).run();
}

std::vector<std::pair<std::string, std::string>> described(const AdoptTable& table,
                                                           const AdoptShape& shape) {
  std::vector<std::pair<std::string, std::string>> fields;
  for (const auto field : kFields) {
    const std::string name(field);
    if (const std::string* const column = shape.column(name)) {
      fields.emplace_back(name, *column + " (" + table.find(*column)->type + ")");
    } else if (const auto value = shape.values.find(name); value != shape.values.end()) {
      fields.emplace_back(name, in_quotes(value->second) + " in all rows");
    }
  }
  if (const auto type = shape.values.find("content_type"); type != shape.values.end())
    fields.emplace_back("content_type", in_quotes(type->second));
  for (const auto& [column, header] : shape.headers)
    fields.emplace_back("header " + header, column);
  return fields;
}

std::vector<std::string> unused_columns(const AdoptTable& table, const AdoptShape& shape) {
  std::vector<std::string> unused;
  for (const AdoptColumn& column : table.columns) {
    const auto is_it = [&](const auto& pair) { return pair.second == column.name; };
    const auto is_header = [&](const auto& pair) { return pair.first == column.name; };
    if (std::none_of(shape.columns.begin(), shape.columns.end(), is_it) &&
        std::none_of(shape.headers.begin(), shape.headers.end(), is_header))
      unused.push_back(column.name);
  }
  return unused;
}

std::string to_json(const AdoptShape& shape) {
  const nlohmann::json json{{"columns", shape.columns},
                            {"values", shape.values},
                            {"headers", shape.headers},
                            {"mark", static_cast<int>(shape.mark)},
                            {"sent", shape.sent},
                            {"pending", shape.pending},
                            {"sent_word", shape.sent_word},
                            {"backlog", static_cast<int>(shape.backlog)},
                            {"debezium", shape.debezium},
                            {"said",
                             {{"columns", shape.said.columns},
                              {"values", shape.said.values},
                              {"headers", shape.said.headers},
                              {"sent_values", shape.said.sent_values},
                              {"pending_values", shape.said.pending_values}}}};
  return write_json(json);
}

AdoptShape parse_adopt_shape(std::string_view text) {
  const auto json = parse_json<nlohmann::json>(text);
  AdoptShape shape;
  json.at("columns").get_to(shape.columns);
  json.at("values").get_to(shape.values);
  json.at("headers").get_to(shape.headers);
  shape.mark = static_cast<SentMark>(json.at("mark").get<int>());
  json.at("sent").get_to(shape.sent);
  json.at("pending").get_to(shape.pending);
  json.at("sent_word").get_to(shape.sent_word);
  shape.backlog = static_cast<Backlog>(json.at("backlog").get<int>());
  json.at("debezium").get_to(shape.debezium);
  const auto& said = json.at("said");
  said.at("columns").get_to(shape.said.columns);
  said.at("values").get_to(shape.said.values);
  said.at("headers").get_to(shape.said.headers);
  said.at("sent_values").get_to(shape.said.sent_values);
  said.at("pending_values").get_to(shape.said.pending_values);
  return shape;
}

}  // namespace outbox::store::postgres
