#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "store/postgres/lineage_queries.hpp"
#include "store/postgres/parts.hpp"
#include "store/postgres/schema.hpp"

namespace outbox::store::postgres {
namespace {

/// The least id that a transaction can have.
constexpr std::int64_t kFirstXid = 3;
/// The width of the first partition for events that are written here; relays add the next ones.
constexpr std::int64_t kPartitionWidth = 1'000'000;
/// The number of ids that are used up between the two rows of the witness.
constexpr int kIdsBetween = 8;

class Repair {
 public:
  explicit Repair(Connection& connection)
      : connection_(connection), queries_(connection.queries().schema) {}

  [[nodiscard]] Result<LineageRepair> plan() {
    OUTBOX_TRY(begin());
    auto planned = look();
    connection_.rollback();
    return planned;
  }

  [[nodiscard]] Result<LineageRepair> apply() {
    OUTBOX_TRY(const LineageRepair planned, plan());
    if (!planned.needed) return planned;
    OUTBOX_TRY(const std::string witness, first_witness());
    OUTBOX_TRY(begin_as_owner());
    auto done = rewrite(witness);
    if (!done || !done->needed) {
      connection_.rollback();
      return done;
    }
    OUTBOX_TRY(connection_.run(&Queries::commit));
    return done;
  }

 private:
  [[nodiscard]] Status run(const Query& query, Params params = {}) {
    auto rows = connection_.exec(query, std::move(params));
    return rows ? Status{} : Status(pass(rows));
  }

  [[nodiscard]] Status begin() {
    connection_.set_deadline(std::chrono::hours(24));
    for (const auto query : {&Queries::begin, &Queries::no_limits, &Queries::pin_search_path})
      connection_.send(query);
    auto begun = connection_.finish();
    return begun ? Status{} : Status(pass(begun));
  }

  [[nodiscard]] Status begin_as_owner() {
    OUTBOX_TRY(begin());
    connection_.send(queries_.patience);
    connection_.send(queries_.as_owner);
    auto begun = connection_.finish();
    return begun ? Status{} : Status(pass(begun));
  }

  /// Finds out what has to be done. Sets restored_ if anything has to.
  [[nodiscard]] Result<LineageRepair> look() {
    OUTBOX_TRY(const Rows witness, connection_.exec(queries_.witness));
    if (witness.is_null(0, 0)) {
      const std::int64_t ours = witness.int8(0, 1);
      if (ours == 2) return LineageRepair{};
      return fail(
          Errc::corrupt,
          "schema " + queries_.schema + ": the table witness does not say of which database it is",
          "it has two rows, and nothing but migrations and this repair writes them; restore the dump again");
    }
    restored_ = witness.int8(0, 0);
    LineageRepair repair{.needed = true};
    OUTBOX_TRY(const Rows counts, connection_.exec(queries_.counts, {restored_}));
    repair.restored = counts.int8(0, 0);
    repair.fresh = counts.int8(0, 1);
    OUTBOX_TRY(const Rows pending, connection_.exec(queries_.pending, {restored_}));
    for (int row = 0; row < pending.size(); ++row) {
      if (!pending.boolean(row, 1)) {
        return fail(Errc::corrupt,
                    "subscription " + pending.text(row, 0) +
                        " has no cursor on some lanes: what it had got is not known",
                    "its settlements are missing; restore the dump again");
      }
      repair.pending.push_back(
          {.subscription = pending.text(row, 0), .events = pending.int8(row, 2)});
    }
    return repair;
  }

  /// Writes the first row in a transaction of its own, which is over long before the second row is
  /// written. Returns the row's value.
  [[nodiscard]] Result<std::string> first_witness() {
    OUTBOX_TRY(begin_as_owner());
    OUTBOX_TRY(const Rows row, connection_.exec(queries_.write_witness));
    OUTBOX_TRY(connection_.run(&Queries::commit));
    for (int i = 0; i < kIdsBetween; ++i) {
      OUTBOX_TRY(run(queries_.use_id));
    }
    return std::to_string(row.uint64(0, 0));
  }

  [[nodiscard]] Result<LineageRepair> rewrite(const std::string& witness) {
    OUTBOX_TRY(run(queries_.lock));
    OUTBOX_TRY(LineageRepair repair, look());
    if (!repair.needed) return repair;
    const Params restored{restored_};
    for (const auto& [query, params] :
         {std::pair(&queries_.keep_cursors, Params{}), std::pair(&queries_.keep_totals, Params{}),
          std::pair(&queries_.find_fresh, restored), std::pair(&queries_.find_pending, restored),
          std::pair(&queries_.find_open, restored), std::pair(&queries_.make_classes, restored)}) {
      OUTBOX_TRY(run(*query, params));
    }
    OUTBOX_TRY(const Rows bounds, connection_.exec(queries_.bounds));
    const std::int64_t least = bounds.is_null(0, 0) ? restored_ : bounds.int8(0, 0);
    if (least < kFirstXid) {
      return fail(
          Errc::unsupported,
          "the events are pending for more different sets of subscriptions than this database had "
          "transactions before it was restored",
          "restore it again, later, in a database with more of them");
    }
    const std::int64_t top = bounds.int8(0, 1);
    const bool shifts = !bounds.is_null(0, 2) && bounds.int8(0, 2) <= top;
    OUTBOX_TRY(make_room(bounds.int8(0, 3)));
    OUTBOX_TRY(move_all(shifts ? top - bounds.int8(0, 2) + 1 : 0));
    OUTBOX_TRY(begin_again(least, top, witness));
    OUTBOX_TRY(compare(repair));
    OUTBOX_TRY(run(queries_.clean_up));
    return repair;
  }

  /// Takes the rows out of the log, and makes partitions for the classes and for events that are
  /// written here. `next` is the next transaction.
  [[nodiscard]] Status make_room(std::int64_t next) {
    OUTBOX_TRY(const Rows names, connection_.exec(queries_.partitions));
    for (int row = 0; row < names.size(); ++row) {
      old_.push_back(names.text(row, 0));
      for (const Query* query : {&queries_.take_partition, &queries_.rename_partition}) {
        const auto filled = LineageQueries::with(*query, "{partition}", old_.back());
        OUTBOX_TRY(run(filled));
      }
    }
    for (const Query* query : {&queries_.copy_default, &queries_.empty_default}) {
      OUTBOX_TRY(run(*query));
    }
    old_.emplace_back("event_default");
    OUTBOX_TRY(make_partition(kFirstXid, restored_ + 1));
    return make_partition(restored_ + 1, next + kPartitionWidth);
  }

  /// `shift` is added to the seqs of events that were written here.
  [[nodiscard]] Status move_all(std::int64_t shift) {
    OUTBOX_TRY(const Rows columns, connection_.exec(queries_.columns));
    for (const std::string& name : old_) {
      const auto filled = [&](const Query& query) {
        return LineageQueries::with(LineageQueries::with(query, "{partition}", name), "{columns}",
                                    columns.bytes(0, 0));
      };
      OUTBOX_TRY(run(filled(queries_.move_events), {restored_, shift}));
      OUTBOX_TRY(run(filled(queries_.drop_partition)));
    }
    return {};
  }

  [[nodiscard]] Status make_partition(std::int64_t from, std::int64_t to) {
    for (const Query* query : {&queries_.make_partition, &queries_.attach_partition}) {
      const auto filled = LineageQueries::with(
          LineageQueries::with(*query, "{from}", std::to_string(from)), "{to}", std::to_string(to));
      OUTBOX_TRY(run(filled));
    }
    return {};
  }

  [[nodiscard]] Status begin_again(std::int64_t least, std::int64_t top,
                                   const std::string& witness) {
    for (const auto& [query, params] :
         {std::pair(&queries_.raise_sequence, Params{top}),
          std::pair(&queries_.raise_generation, Params{}),
          std::pair(&queries_.forget_owners, Params{}),
          std::pair(&queries_.forget_relays, Params{}),
          std::pair(&queries_.forget_settlements, Params{}),
          std::pair(&queries_.begin_again, Params{restored_}),
          std::pair(&queries_.forget_pruned, Params{}),
          std::pair(&queries_.note_pruned, Params{std::to_string(least)}),
          std::pair(&queries_.rename_outbox, Params{}),
          std::pair(&queries_.forget_witness, Params{witness}),
          std::pair(&queries_.write_witness, Params{})}) {
      OUTBOX_TRY(run(*query, params));
    }
    return {};
  }

  /// Counts again from what was written, and compares it with what look() found.
  [[nodiscard]] Status compare(const LineageRepair& repair) {
    OUTBOX_TRY(const Rows rows, connection_.exec(queries_.compare));
    const auto total = [](const LineageRepair& of) { return of.restored + of.fresh; };
    OUTBOX_TRY(const Rows counts, connection_.exec(queries_.counts, {restored_}));
    const std::int64_t left = counts.int8(0, 0) + counts.int8(0, 1);
    bool same = left == total(repair) && rows.size() == static_cast<int>(repair.pending.size());
    for (int row = 0; same && row < rows.size(); ++row) {
      const auto& planned = repair.pending[static_cast<std::size_t>(row)];
      same = rows.int8(row, 1) == rows.int8(row, 2) &&
             rows.int8(row, 1) == planned.events + repair.fresh;
    }
    if (same) return {};
    return fail(Errc::internal,
                "the repair would not leave pending what was pending, so it was not made",
                "please report it, with what the same command says without --apply");
  }

  Connection& connection_;
  const LineageQueries queries_;
  std::int64_t restored_{0};        ///< The transaction that restored the witness.
  std::vector<std::string> old_{};  ///< The partitions that were taken out of the log.
};

}  // namespace

Result<LineageRepair> plan_lineage_repair(Connection& connection) {
  OUTBOX_TRY(check_current(connection));
  return Repair(connection).plan();
}

Result<LineageRepair> repair_lineage(Connection& connection) {
  OUTBOX_TRY(check_current(connection));
  return Repair(connection).apply();
}

}  // namespace outbox::store::postgres
