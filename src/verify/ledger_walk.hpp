// Follows the settlements of one subscription lane by lane and compares each with the events it
// covers (docs/design/verify.md). Pure.
//
//   LedgerWalk walk(pruned);
//   for (rows in the order of (generation, id)) {
//     walk.add(row);
//     if (walk.full()) compare(walk);
//   }
//   walk.finish(now);
//   compare(walk);       // of each range of walk.window(): walk.count(event), then walk.close()
//   walk.report();
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/history.hpp"
#include "verify/ledger_place.hpp"

namespace outbox::verify {

/// Scripts rely on these words: they may not change.
enum class FaultKind : std::uint8_t {
  counts,     ///< A settlement counts other events than the log has.
  uncovered,  ///< Events that no settlement covers.
  disjoint,   ///< A settlement does not begin at the cursor.
  cursor,     ///< A claim moves the cursor.
  beginning,  ///< The first settlement of lanes is missing.
  overlap,    ///< A partly void settlement counts too few events.
  parked,     ///< Settlements and rows disagree on what became of parked events.
  sum,        ///< enqueued = delivered + ... does not hold.
  lost,       ///< Delivered events that are not in the destination.
  ghosts,     ///< Ids in the destination that are not in the log.
};
[[nodiscard]] const char* to_string(FaultKind kind) noexcept;

struct Fault {
  FaultKind kind{FaultKind::counts};
  std::int64_t settlement{0};  ///< The id of the settlement; 0 if there is none.
  store::LaneMask lanes{0};
  std::int64_t at_us{0};
  std::int64_t first_seq{0};  ///< The lowest of the events in question; 0 if the log has none.
  std::int64_t last_seq{0};
  std::string text;
};

/// Where the ledger of some lanes begins. It does not count the events before this place.
struct Beginning {
  store::LaneMask lanes{0};
  Place place;
};

struct LedgerReport {
  // Sums of the settlements that are not void.
  store::Tally acked{};
  store::Tally filtered{};
  store::Tally parked{};
  store::Tally retried{};    ///< Parked events that were delivered.
  std::int64_t carried{0};   ///< Parked events from before the subscription was reset.
  std::int64_t repeated{0};  ///< Events counted above, and again by a later settlement.

  std::int64_t events{0};       ///< Events of the log between the baseline and the cursors.
  std::int64_t pending{0};      ///< Events of the log beyond the cursors.
  std::int64_t skipped{0};      ///< Events of the log that a reset passed.
  std::int64_t settlements{0};  ///< Settlements that were compared.
  std::int64_t unchecked{0};    ///< Settlements whose events are gone, at least partly.
  std::int64_t voided{0};
  std::size_t fault_count{0};
  std::vector<Fault> faults{};          ///< The first faults.
  std::vector<Beginning> beginnings{};  ///< Each lane is in one of them.
};

/// How far the ledger of some lanes was compared.
struct Compared {
  store::LaneMask lanes{0};
  store::LedgerRank row{};  ///< The last row.
  Place place;              ///< Where it ends.
};

class LedgerWalk {
 public:
  struct Limits {
    std::size_t window{2000};    ///< Steps of all strands that are compared together.
    std::size_t longest{40000};  ///< From this many on, a window may end inside a pair.
    std::size_t tail{256};       ///< Newest steps that a claim may still make void.
  };
  explicit LedgerWalk(store::Pruned pruned = {});
  LedgerWalk(store::Pruned pruned, Limits limits);

  /// Goes on where another walk has compared up to, instead of at the first rows. Before add().
  void resume(const Compared& from);
  /// From now on a row may be added later than one behind it in the order. It does not count for
  /// the lanes of that one, since its relay had lost them.
  void expect_late_rows() { expects_late_ = true; }
  /// The next row, in the order of (generation, id).
  void add(store::LedgerRow row);
  /// Whether there are steps to compare.
  [[nodiscard]] bool full() const;
  /// From now on only rows that were written before this time are compared, all of them. Unit:
  /// microseconds since 1970.
  void compare_until(std::int64_t at_us) { until_us_ = at_us; }
  /// What retention has removed until now.
  void set_pruned(const store::Pruned& pruned) { pruned_ = pruned; }
  /// How far everything was compared, after close().
  [[nodiscard]] std::vector<Compared> compared() const;
  /// Returns what was found since the last call.
  [[nodiscard]] LedgerReport take_report() { return std::exchange(report_, {}); }
  /// There are no more rows: what is beyond the cursors, up to `now`, is pending.
  void finish(const Place& now);

  /// The events that have to be read for the steps that are to be compared.
  [[nodiscard]] std::vector<store::EventRange> window();
  /// What an event is to this subscription.
  enum class Standing : std::uint8_t { elsewhere, settled, pending };
  /// Counts one event of the window. Any other event is ignored, and is `elsewhere`.
  Standing count(const store::LedgerEvent& event);
  /// Compares and forgets the steps of the window, once all its events were counted.
  void close();

  void fault(Fault fault);
  [[nodiscard]] const LedgerReport& report() const { return report_; }

 private:
  enum class Use : std::uint8_t { compare, disputed, uncovered, skipped, pending, ignored };
  /// What led to a place: a settlement, or a gap that no settlement covers.
  struct Entry {
    Use use{Use::compare};
    store::LedgerRow row{};
    store::LaneMask open{0};    ///< Lanes whose events are not counted yet.
    store::LaneMask voided{0};  ///< Lanes for which the settlement does not count.
    store::Tally found{};
    std::int64_t first_seq{0};
    std::int64_t last_seq{0};
  };
  using EntryPtr = std::shared_ptr<Entry>;
  struct Step {
    Place end;
    EntryPtr entry;
  };
  struct Strand {
    store::LaneMask lanes{0};
    store::LedgerRank last{};  ///< The rank of its newest row so far.
    /// The rank of the row that ends at `base`.
    store::LedgerRank compared{};
    Place base;  ///< The place before the first step.
    std::deque<Step> steps{};
    std::size_t due{0};   ///< Steps in the window.
    std::size_t hint{0};  ///< The step of the last event.

    [[nodiscard]] const Place& cursor() const { return steps.empty() ? base : steps.back().end; }
    [[nodiscard]] const Place& place(std::size_t step) const {
      return step == 0 ? base : steps[step - 1].end;
    }
  };

  /// Makes the lanes strands of their own, and returns them.
  std::vector<Strand*> find_strands(store::LaneMask lanes);
  void begin_lanes(const EntryPtr& entry, Strand& strand);
  void reset(Strand& strand, const EntryPtr& entry);
  void claim(Strand& strand, const EntryPtr& entry);
  void settle(Strand& strand, const EntryPtr& entry);
  void push(Strand& strand, const EntryPtr& entry, const Place& end);
  void push_gap(Strand& strand, Use use, const store::LedgerRow& row, const Place& end);
  /// Sets the strand back to an earlier place. Returns false if the strand was never there, as far
  /// as is known.
  bool set_back(Strand& strand, const Place& place);
  /// Moves the strand to a place, wherever it was: a gap leads there from the last step before the
  /// place. This is done after a fault, a reset, or removed rows.
  void force_to(Strand& strand, const Place& place, const store::LedgerRow& row, Use gap);
  void pop_to(Strand& strand, std::size_t kept);
  void release(const EntryPtr& entry, store::LaneMask lanes);
  void settle_up(const Entry& entry);
  void compare(const Entry& entry);
  [[nodiscard]] std::size_t due_steps(const Strand& strand) const;
  /// Whether retention may have removed rows after the strand's newest one that explain why this
  /// row stands at `place`: settlements, so that this row goes on from further ahead, and, if this
  /// row is another owner's, the claim.
  [[nodiscard]] bool is_explained(const Strand& strand, const store::LedgerRow& row,
                                  const Place& place) const;
  [[nodiscard]] bool is_pruned(const Place& start) const;
  void row_fault(FaultKind kind, const Entry& entry, store::LaneMask lanes, std::string text);

  store::Pruned pruned_;
  Limits limits_;
  std::deque<Strand> strands_;
  std::vector<Strand*> by_lane_;
  bool finished_{false};
  bool expects_late_{false};
  std::optional<std::int64_t> until_us_{};
  LedgerReport report_;
};

}  // namespace outbox::verify
