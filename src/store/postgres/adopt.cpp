// Adopts a table of another outbox: docs/design/adopt.md has the states and why the order of the
// steps matters.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/count.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "store/adoption.hpp"
#include "store/postgres/adopt_catalog.hpp"
#include "store/postgres/adopt_changes.hpp"
#include "store/postgres/adopt_shape.hpp"
#include "store/postgres/adopt_statements.hpp"
#include "store/postgres/adopt_steps.hpp"
#include "store/postgres/connection.hpp"
#include "store/postgres/schema.hpp"

namespace outbox::store::postgres {

// Called by backends.cpp.
Result<std::unique_ptr<Adopter>> open_adopter(const StoreOptions& options);
Result<std::vector<AdoptionRow>> open_adoptions(const StoreOptions& options);

namespace {

using Says = Adopter::Says;

/// The table and the adoption that a name from a person stands for.
struct Meant {
  std::optional<FoundTable> table{};
  std::optional<FoundAdoption> adopted{};  ///< The table's adoption, if it has not ended.
};

/// Whether a name may mean an adopted table that had the name before: only if no table has the name
/// now, or in any case.
enum class OldName : std::uint8_t { of_no_table_now, of_any };

/// A copy of many rows may take long; the connection itself is watched by TCP.
constexpr std::chrono::hours kDeadline{24};
constexpr std::chrono::seconds kLookLock{30};

class PostgresAdopter final : public Adopter {
 public:
  PostgresAdopter(Connection connection, std::string schema)
      : connection_(std::move(connection)), schema_(std::move(schema)) {
    connection_.set_deadline(kDeadline);
  }

  Result<std::vector<AdoptionRow>> list() override {
    OUTBOX_TRY(const auto found, find_adoptions(connection_, schema_));
    std::vector<AdoptionRow> rows;
    for (const FoundAdoption& one : found) rows.push_back(one.row);
    return rows;
  }

  Result<std::optional<AdoptionRow>> find(const std::string& name) override {
    OUTBOX_TRY(const NamedTable named, resolve_table(connection_, name));
    OUTBOX_TRY(auto adopted, open_adoption(named, OldName::of_any));
    if (!adopted) return std::optional<AdoptionRow>{};
    return std::optional(std::move(adopted->row));
  }

  Result<AdoptionPlan> plan(const std::string& name, const AdoptionOptions& options) override {
    AdoptionPlan plan;
    OUTBOX_TRY(const Meant meant, look_up(name));
    const auto& [table, adopted] = meant;
    if (!table && !adopted)
      return fail(Errc::not_found, "there is no table " + in_quotes(name),
                  "write schema.table; a name with capitals needs double quotes: '\"Outbox\"'");
    plan.table = adopted ? adopted->row.table : table->table.name;
    if (adopted) plan.adopted = adopted->row;
    if (!table || (adopted && adopted->row.state == "broken")) return plan;
    OUTBOX_TRY(AdoptShape shape, find_shape(*table, options, adopted));
    describe(plan, *table, shape);
    plan.misfit = adopted && !find_changes(*table, *adopted).empty();
    if (adopted || shape.backlog == Backlog::none) return plan;
    OUTBOX_TRY(look(plan, *table, shape));
    return plan;
  }

  Result<Adopted> apply(const AdoptionPlan& plan, const AdoptionOptions& options,
                        const AdoptionLocks& locks, const Says& says) override {
    AdoptSteps steps(connection_, schema_, locks, says);
    Adopted result;
    OUTBOX_TRY(Meant meant, look_up(plan.table));
    auto& [table, adopted] = meant;
    if (!table) return fail(Errc::not_found, "there is no table " + in_quotes(plan.table));
    OUTBOX_TRY(AdoptShape shape, find_shape(*table, options, adopted));
    if (adopted && adopted->row.state != "broken" && !find_changes(*table, *adopted).empty()) {
      says("making the trigger's function for the columns of now");
      OUTBOX_TRY(steps.remake(*table, shape, adopted->row.id));
      result.changed = result.remade = true;
    }
    if (!adopted) {
      says("waiting for the transactions that write to " + table->table.name);
      Status status = steps.first_cut(*table, shape);
      const bool lost = !status && status.error().origin == "pg:23505";
      if (!status && !lost) return pass(status);
      OUTBOX_TRY(adopted, open_adoption(table->relation));
      if (!adopted) return fail(Errc::cancelled, "another command has undone it");
      // Another command was faster: this one goes on with that adoption, with the options that it
      // began with.
      if (lost) {
        OUTBOX_TRY(shape, find_shape(*table, options, adopted));
      }
    }
    OUTBOX_TRY(finish(steps, *table, shape, adopted->row, result));
    OUTBOX_TRY(result.row, read_row(adopted->row.id));
    result.longest_lock_ms = steps.longest_lock_ms();
    return result;
  }

  Result<Adopted> undo(const AdoptionRow& row, const AdoptionLocks& locks,
                       const Says& says) override {
    AdoptSteps steps(connection_, schema_, locks, says);
    Adopted result;
    OUTBOX_TRY(const auto adopted,
               open_adoption_where([&](const FoundAdoption& one) { return one.row.id == row.id; }));
    if (!adopted) return fail(Errc::not_found, "table " + row.table + " is not adopted");
    OUTBOX_TRY(const auto table, find_table(*adopted));
    if (table && !table->may_undo)
      return fail(Errc::permission_denied,
                  "only the owner of " + row.table + " may remove its trigger",
                  "use the owner's login, or a member of that role");
    AdoptShape shape = parse_adopt_shape(adopted->shape);
    const bool whole = table && adopted->row.state != "broken";
    const bool has_mark = whole && shape.mark != SentMark::none;
    const bool marks = has_mark && shape.backlog != Backlog::none;
    if (marks) {
      OUTBOX_TRY(check_there(*table, *shape.column("sent")));
    }
    if (whole && adopted->row.is_unfinished()) {
      OUTBOX_TRY(shape, shape_begun(*table, {}, *adopted));
    }
    if (whole) {
      OUTBOX_TRY(finish(steps, *table, shape, adopted->row, result));
    }
    if (marks) {
      OUTBOX_TRY(steps.mark(*table, shape, adopted->row.id));
    }
    OUTBOX_TRY(steps.end(table, shape, adopted->row, marks));
    OUTBOX_TRY(result.row, read_row(adopted->row.id));
    result.changed = true;
    result.marked = steps.marked();
    result.unmarked = has_mark && !marks;
    result.longest_lock_ms = steps.longest_lock_ms();
    return result;
  }

 private:
  /// The newest adoption that has not ended and for which `is` returns true.
  template <class Is>
  [[nodiscard]] Result<std::optional<FoundAdoption>> open_adoption_where(Is is) {
    OUTBOX_TRY(auto all, find_adoptions(connection_, schema_));
    for (auto one = all.rbegin(); one != all.rend(); ++one) {
      if (one->row.state != "ended" && is(*one)) return std::optional(std::move(*one));
    }
    return std::optional<FoundAdoption>{};
  }

  [[nodiscard]] Result<std::optional<FoundAdoption>> open_adoption(std::int64_t relation) {
    return open_adoption_where(
        [&](const FoundAdoption& one) { return one.relation == relation && relation != 0; });
  }

  /// Looks for the table that has the name and, if that table is not adopted, for a table that had
  /// the name when it was adopted.
  [[nodiscard]] Result<std::optional<FoundAdoption>> open_adoption(const NamedTable& named,
                                                                   OldName former) {
    OUTBOX_TRY(auto adopted, open_adoption(named.relation));
    if (adopted || (named.is_table && former == OldName::of_no_table_now)) return adopted;
    return open_adoption_where([&](const FoundAdoption& one) {
      return std::find(named.names.begin(), named.names.end(), one.known_as) != named.names.end();
    });
  }

  [[nodiscard]] Result<std::optional<FoundTable>> find_table(const FoundAdoption& adopted) {
    return read_table(connection_, schema_, adopted.relation, adopted.id_name);
  }

  [[nodiscard]] Result<Meant> look_up(const std::string& name) {
    OUTBOX_TRY(const NamedTable named, resolve_table(connection_, name));
    Meant meant;
    OUTBOX_TRY(meant.adopted, open_adoption(named, OldName::of_no_table_now));
    if (meant.adopted) {
      OUTBOX_TRY(meant.table, find_table(*meant.adopted));
    } else {
      OUTBOX_TRY(meant.table, read_table(connection_, schema_, named.relation, ""));
    }
    return meant;
  }

  [[nodiscard]] Result<AdoptionRow> read_row(std::int32_t id) {
    OUTBOX_TRY(auto all, find_adoptions(connection_, schema_));
    for (FoundAdoption& one : all) {
      if (one.row.id == id) return std::move(one.row);
    }
    return fail(Errc::not_found, "the adoption is gone");
  }

  [[nodiscard]] static std::vector<ColumnChange> find_changes(const FoundTable& table,
                                                              const FoundAdoption& adopted) {
    return changed_columns(parse_adopt_shape(adopted.shape), parse_columns(adopted.columns),
                           table.table.columns);
  }

  [[nodiscard]] static Status check_there(const FoundTable& table, const std::string& column) {
    if (table.table.find(column) != nullptr) return {};
    return fail(Errc::not_found,
                "table " + table.table.name + " has no column " + in_quotes(column) + " any more",
                "its trigger names it: every INSERT fails; bring the column back");
  }

  /// Fails if a column changed in a way for which the function cannot simply be made again.
  [[nodiscard]] static Status check_changes(const FoundTable& table, const FoundAdoption& adopted) {
    for (const ColumnChange& change : find_changes(table, adopted)) {
      const std::string what =
          "table " + table.table.name + ": its column " + in_quotes(change.column);
      if (change.renamed_to)
        return fail(Errc::not_found, what + " is now called " + in_quotes(*change.renamed_to),
                    "every INSERT fails; outbox doctor says how to rename it back");
      if (change.says_sent && change.type_now)
        return fail(Errc::unsupported, what + " is of another type now: " + *change.type_now,
                    "outbox doctor says how to change it back to " + change.type);
    }
    return {};
  }

  /// The options that the adoption began with count; options that say something else are refused.
  [[nodiscard]] static Result<AdoptShape> shape_begun(const FoundTable& table,
                                                      const AdoptionOptions& options,
                                                      const FoundAdoption& adopted) {
    OUTBOX_TRY(check_changes(table, adopted));
    AdoptShape stored = parse_adopt_shape(adopted.shape);
    leave_out_gone(stored, table.table, adopted.row.state == "copying");
    for (const auto& [field, column] : stored.columns) {
      OUTBOX_TRY(check_there(table, column));
    }
    OUTBOX_TRY(check_columns(table.table, stored));
    if (options.empty()) return stored;
    OUTBOX_TRY(AdoptShape said, recognise(table.table, options));
    said.sent_word = stored.sent_word;
    said.said = stored.said;
    if (to_json(said) == to_json(stored)) return stored;
    return fail(Errc::already_exists,
                "table " + table.table.name + " is adopted with other options",
                "leave them out, or first --undo");
  }

  [[nodiscard]] Result<AdoptShape> find_shape(const FoundTable& table,
                                              const AdoptionOptions& options,
                                              const std::optional<FoundAdoption>& adopted) {
    if (adopted) return shape_begun(table, options, *adopted);
    OUTBOX_TRY(AdoptShape shape, recognise(table.table, options));
    OUTBOX_TRY(check_ids(table.table, shape));
    if (shape.mark == SentMark::word) {
      OUTBOX_TRY(classify(table.table, shape));
    }
    return shape;
  }

  /// Consumers would take two rows with one id for one event. A uuid counts as unique over all
  /// partitions.
  [[nodiscard]] Status check_ids(const AdoptTable& table, const AdoptShape& shape) {
    const AdoptColumn& id = *table.find(*shape.column("id"));
    if (!id.repeats || id.type == "uuid") return {};
    const Query query = repeated_ids(table, shape);
    Rows repeated;
    Status read = AdoptSteps::transaction(connection_, kLookLock, [&]() -> Result<Decision> {
      OUTBOX_TRY(repeated, connection_.exec(query));
      return Decision::rollback;
    });
    if (!read || repeated.empty()) return read;
    return fail(
        Errc::invalid_argument,
        "table " + table.name + ": several rows have the id " + in_quotes(repeated.text(0, 0)),
        "ids must be unique over all partitions: --column id=COLUMN names others");
  }

  /// Every word of a status column must be known to mean sent or not: a guess could lose events, or
  /// send them again.
  [[nodiscard]] Status classify(const AdoptTable& table, AdoptShape& shape) {
    const Query query = words_in_use(table, shape);
    Rows words;
    OUTBOX_TRY(AdoptSteps::transaction(connection_, kLookLock, [&]() -> Result<Decision> {
      OUTBOX_TRY(words, connection_.exec(query));
      return Decision::rollback;
    }));
    std::string unknown;
    std::string pending;
    for (int row = 0; row < words.size(); ++row) {
      const std::string word = words.text(row, 0);
      if (means_sent(shape, word)) {
        if (shape.sent_word.empty()) shape.sent_word = word;
      } else if (means_pending(shape, word)) {
        if (pending.empty()) pending = word;
      } else {
        unknown += (unknown.empty() ? "" : ", ") + in_quotes(word) + " (" +
                   count("row", words.int8(row, 1)) + ")";
      }
    }
    if (!unknown.empty())
      return fail(Errc::invalid_argument,
                  "column " + in_quotes(*shape.column("sent")) +
                      ": whether these were sent is not known: " + unknown,
                  "say so with --sent-values A,B or --pending-values C,D");
    if (shape.sent_word.empty())
      shape.sent_word = !pending.empty() && pending == upper(pending) ? "SENT" : "sent";
    return {};
  }

  [[nodiscard]] static std::string upper(std::string text) {
    for (char& c : text) c = to_upper(c);
    return text;
  }

  static void describe(AdoptionPlan& plan, const FoundTable& table, const AdoptShape& shape) {
    plan.layout = layout_text(shape.debezium);
    plan.fields = described(table.table, shape);
    plan.unused = unused_columns(table.table, shape);
    const std::string number = plan.adopted ? std::to_string(plan.adopted->id) : "N";
    const auto add = [&](const Query& query) { plan.statements.push_back(query.sql); };
    if (plan.adopted) return;
    add(create_adopt_function(table.table, shape, AdoptMode::stage, number));
    add(create_adopt_trigger(table.table, AdoptMode::stage, number));
    if (shape.backlog != Backlog::none) add(copy_backlog(table.table, shape, number));
    add(create_adopt_function(table.table, shape, AdoptMode::forward, number));
    add(create_adopt_trigger(table.table, AdoptMode::forward, number));
  }

  /// Counts the rows that are pending, and those of them that the log refuses.
  [[nodiscard]] Status look(AdoptionPlan& plan, const FoundTable& table, const AdoptShape& shape) {
    const Query query = check_backlog(table.table, shape);
    return AdoptSteps::transaction(connection_, kLookLock, [&]() -> Result<Decision> {
      OUTBOX_TRY(const Rows rows, connection_.exec(query));
      plan.pending = rows.int8(0, 0);
      plan.refused = rows.int8(0, 1);
      plan.problems = parse_json<nlohmann::json>(rows.bytes(0, 2)).get<std::vector<std::string>>();
      return Decision::rollback;
    });
  }

  /// Takes the adoption from its present state to forwarding.
  [[nodiscard]] static Status finish(AdoptSteps& steps, const FoundTable& table,
                                     const AdoptShape& shape, const AdoptionRow& adopted,
                                     Adopted& result) {
    if (adopted.state == "broken")
      return fail(Errc::corrupt, "table " + adopted.table + ": " + broken_text(adopted),
                  "outbox doctor, and docs/guide/adopt.md, \"The trigger is gone\"");
    if (adopted.state == "forwarding") return {};
    result.changed = true;
    OUTBOX_TRY(steps.copy(table, shape, adopted.id));
    for (bool done = false; !done;) {
      OUTBOX_TRY(steps.drain(adopted.id));
      OUTBOX_TRY(done, steps.second_cut(table, adopted.id));
    }
    return {};
  }

  Connection connection_;
  const std::string schema_;
};

}  // namespace

Result<std::unique_ptr<Adopter>> open_adopter(const StoreOptions& options) {
  OUTBOX_TRY(Connection connection, Connection::open(options, "adopt"));
  OUTBOX_TRY(check_current(connection));
  return std::make_unique<PostgresAdopter>(std::move(connection), options.schema);
}

Result<std::vector<AdoptionRow>> open_adoptions(const StoreOptions& options) {
  OUTBOX_TRY(Connection connection, Connection::open(options, "adoptions"));
  OUTBOX_TRY(const auto found, find_adoptions(connection, options.schema));
  std::vector<AdoptionRow> rows;
  for (const FoundAdoption& one : found) {
    if (one.row.state != "ended") rows.push_back(one.row);
  }
  return rows;
}

}  // namespace outbox::store::postgres
