// One transaction of events. All of them at once; if the server blames an event, again in halves, each behind a savepoint, until the
// event is found. That one is left out, what follows of its keys too, everything else is committed. Pure.
//
//   Batch batch(std::move(rows), deadline, insert);
//   for (auto round = batch.next(); !round.empty(); round = batch.next()) batch.answered(ask(round));
//   batch.take_outcomes(...);
//
// Invariants:
//   1. An event is acked only after the COMMIT of a transaction in which its statement succeeded.
//   2. No event is inserted whose key has an event before it in the batch that was refused (the no-gap rule).
//   3. Whatever else than one event's fault happens, nothing of the batch is committed, or it is not known: `lost`.
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
  /// The statements that insert these rows.
  using Insert = std::function<std::vector<Statement>(std::span<const Row* const>)>;

  Batch(std::vector<Row> rows, std::chrono::milliseconds deadline, Insert insert);

  /// The statements of the next round trip; empty: it is over.
  [[nodiscard]] std::vector<Statement> next();
  void answered(const Answer& answer);

  [[nodiscard]] std::span<const Row> rows() const { return rows_; }
  /// An event was refused, so that others were left out: the sink must stop.
  [[nodiscard]] bool refused() const { return refusals_ > 0; }
  /// Why nothing was committed, other than the fault of an event; null: no such reason.
  [[nodiscard]] const Error* failure() const { return failed_ ? &error_ : nullptr; }
  /// Once it is over: one for each row, in their order.
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
  std::vector<Error> errors_;  ///< Of those refused.
  std::size_t refusals_{0};
  bool failed_{false};
  bool committed_{false};
  Error error_;
  Outcome::Kind kind_{Outcome::Kind::unknown};  ///< Of all, if failed_.

  // While sifting.
  std::vector<Range> ranges_;        ///< Still to be tried; the next one is the last.
  std::vector<std::size_t> trying_;  ///< Behind the savepoint.
  Range tried_{0, 0};
  enum class Before : std::uint8_t { nothing, failed, accepted, refused } before_{Before::nothing};
  bool begun_{false};
  std::set<std::string> blocked_;  ///< Keys.
};

}  // namespace outbox::sink::postgres
