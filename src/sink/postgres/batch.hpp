// One transaction of events. It first inserts all of them at once. If the server blames an event,
// it inserts halves, each behind a savepoint, until the event is found; that event and later ones
// of its key are left out, and everything else is committed. Pure.
//
//   Batch batch(std::move(rows), deadline, insert);
//   for (auto round = batch.next(); !round.empty(); round = batch.next())
//     batch.answered(ask(round));
//   batch.take_outcomes(...);
//
// Invariants:
//   1. An event is acked only after the COMMIT of a transaction in which its statement succeeded.
//   2. No event is inserted after an earlier event of its key was refused in the batch (no gaps).
//   3. Any failure but an event's fault commits nothing of the batch, or `lost` says it is unknown.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <outbox/sink.hpp>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "sink/postgres/session.hpp"
#include "sink/postgres/statements.hpp"
#include "sink/postgres/table_name.hpp"

namespace outbox::sink::postgres {

class Batch {
 public:
  /// Makes the statements that insert these rows.
  using Insert = std::function<std::vector<Statement>(std::span<const Row* const>)>;

  Batch(std::vector<Row> rows, std::chrono::milliseconds deadline, Insert insert);

  /// The statements of the next round trip; empty if the batch is over.
  [[nodiscard]] std::vector<Statement> next();
  void answered(const Answer& answer);

  [[nodiscard]] std::span<const Row> rows() const { return rows_; }
  /// Whether an event was refused, so that others were left out and the sink must stop.
  [[nodiscard]] bool refused() const { return refusals_ > 0; }
  /// Why nothing was committed, other than the fault of an event; null if there is no such reason.
  [[nodiscard]] const Error* failure() const { return failed_ ? &error_ : nullptr; }
  /// Appends, once the batch is over, an outcome for each row in the order of the rows.
  void append_outcomes(std::vector<Outcome>& outcomes) const;

 private:
  enum class Step : std::uint8_t { all, sift, commit, undo, over };
  enum class Fate : std::uint8_t { open, inserted, refused, behind };
  struct Range {
    std::size_t begin;
    std::size_t end;
  };

  [[nodiscard]] std::vector<Statement> all();
  [[nodiscard]] std::vector<Statement> sift();
  [[nodiscard]] std::vector<Statement> end_sifting();
  [[nodiscard]] std::vector<std::size_t> open_places(Range range);
  [[nodiscard]] std::vector<Statement> insert(std::span<const std::size_t> places) const;

  void all_failed(const Answer& answer);
  void sift_failed(const Answer& answer);
  void halve(Range range);
  void refuse(std::size_t place, const Failure& failure);
  void give_up(const Answer& answer);
  /// Ends the transaction if it has not ended by itself.
  void undo(const Answer& answer) { step_ = answer.in_transaction ? Step::undo : Step::over; }

  const std::vector<Row> rows_;
  const std::chrono::milliseconds deadline_;
  const Insert insert_;

  Step step_{Step::all};
  std::vector<Fate> fates_;
  std::vector<Error> errors_;  ///< The errors of refused events.
  std::size_t refusals_{0};
  bool failed_{false};
  bool committed_{false};
  Error error_;
  Outcome::Kind kind_{Outcome::Kind::unknown};  ///< The outcome of all rows if failed_.

  // Used while sifting.
  std::vector<Range> ranges_;        ///< Ranges to be tried, the next one last.
  std::vector<std::size_t> trying_;  ///< The places tried behind the savepoint.
  Range tried_{0, 0};
  enum class Before : std::uint8_t { nothing, failed, accepted, refused } before_{Before::nothing};
  bool begun_{false};
  std::set<std::string> blocked_;  ///< The keys of refused events.
};

}  // namespace outbox::sink::postgres
