#include "sink/postgres/batch.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace outbox::sink::postgres {
namespace {

/// After this many refusals the search ends: the destination is at fault rather than the events.
constexpr std::size_t kMostRefusals = 32;

std::string describe_place(const Row& row) { return "table " + row.table.quoted(); }

}  // namespace

Batch::Batch(std::vector<Row> rows, std::chrono::milliseconds deadline, Insert insert)
    : rows_(std::move(rows)),
      deadline_(deadline),
      insert_(std::move(insert)),
      fates_(rows_.size(), Fate::open),
      errors_(rows_.size()) {
  OUTBOX_CHECK(!rows_.empty());
}

std::vector<Statement> Batch::next() {
  switch (step_) {
    case Step::all: return all();
    case Step::sift: return sift();
    case Step::commit: return end_sifting();
    case Step::undo: return {rollback()};
    case Step::over: break;
  }
  return {};
}

std::vector<Statement> Batch::insert(std::span<const std::size_t> places) const {
  std::vector<const Row*> rows;
  rows.reserve(places.size());
  for (const std::size_t place : places) rows.push_back(&rows_[place]);
  return insert_(rows);
}

std::vector<Statement> Batch::all() {
  trying_ = open_places({.begin = 0, .end = rows_.size()});
  std::vector<Statement> statements{begin(), limits(deadline_)};
  for (Statement& statement : insert(trying_)) statements.push_back(std::move(statement));
  statements.push_back(commit());
  return statements;
}

/// The places that may be tried: those of the keys of refused events may not.
std::vector<std::size_t> Batch::open_places(Range range) {
  std::vector<std::size_t> places;
  for (std::size_t place = range.begin; place < range.end; ++place) {
    const auto& keys = rows_[place].keys;
    const bool behind = std::any_of(keys.begin(), keys.end(), [this](const std::string& key) {
      return blocked_.contains(key);
    });
    behind ? void(fates_[place] = Fate::behind) : places.push_back(place);
  }
  return places;
}

std::vector<Statement> Batch::sift() {
  trying_.clear();
  while (trying_.empty() && !ranges_.empty() && refusals_ < kMostRefusals) {
    tried_ = ranges_.back();
    ranges_.pop_back();
    trying_ = open_places(tried_);
  }
  if (trying_.empty()) {
    step_ = Step::commit;
    return end_sifting();
  }
  std::vector<Statement> statements;
  switch (std::exchange(before_, Before::nothing)) {
    case Before::failed: statements.push_back(rollback()); break;
    case Before::accepted: statements.push_back(release()); break;
    case Before::refused: statements.push_back(rollback_to()); break;
    case Before::nothing: break;
  }
  if (!std::exchange(begun_, true)) {
    statements.push_back(begin());
    statements.push_back(limits(deadline_));
    statements.push_back(check_at_once());  // A deferred check would not say which event failed.
  }
  statements.push_back(savepoint());
  for (Statement& statement : insert(trying_)) statements.push_back(std::move(statement));
  return statements;
}

std::vector<Statement> Batch::end_sifting() {
  std::vector<Statement> statements;
  if (std::exchange(before_, Before::nothing) == Before::refused)
    statements.push_back(rollback_to());
  statements.push_back(commit());
  return statements;
}

// ---- answers

void Batch::answered(const Answer& answer) {
  if (step_ == Step::undo) {
    step_ = Step::over;
    return;
  }
  if (answer.failure) {
    switch (step_) {
      case Step::all: return all_failed(answer);
      case Step::sift: return sift_failed(answer);
      default: return give_up(answer);
    }
  }
  for (const std::size_t place : trying_) fates_[place] = Fate::inserted;
  trying_.clear();
  if (step_ == Step::sift) {
    before_ = Before::accepted;
    return;
  }
  committed_ = answer.command == "COMMIT";
  if (!committed_) {  // The COMMIT of a failed transaction is a ROLLBACK.
    failed_ = true;
    kind_ = Outcome::Kind::retry;
    error_ =
        fail(Errc::unavailable, Remedy::retry_transaction,
             "postgres: " + describe_place(rows_.front()) + ": the transaction was rolled back")
            .value();
  }
  step_ = Step::over;
}

void Batch::all_failed(const Answer& answer) {
  if (find_verdict(answer.failure->sqlstate) != Verdict::event) return give_up(answer);
  if (rows_.size() == 1) {
    refuse(0, *answer.failure);
    return undo(answer);
  }
  halve({.begin = 0, .end = rows_.size()});
  // A constraint that is checked at the end of a transaction has already ended it.
  if (answer.in_transaction) before_ = Before::failed;
  step_ = Step::sift;
}

void Batch::sift_failed(const Answer& answer) {
  if (find_verdict(answer.failure->sqlstate) != Verdict::event) return give_up(answer);
  before_ = Before::refused;
  if (trying_.size() == 1) return refuse(trying_.front(), *answer.failure);
  halve(tried_);
}

void Batch::halve(Range range) {
  const std::size_t middle = range.begin + (range.end - range.begin) / 2;
  ranges_.push_back({.begin = middle, .end = range.end});
  ranges_.push_back({.begin = range.begin, .end = middle});
}

void Batch::refuse(std::size_t place, const Failure& failure) {
  fates_[place] = Fate::refused;
  errors_[place] = describe(failure, describe_place(rows_[place]));
  ++refusals_;
  blocked_.insert(rows_[place].keys.begin(), rows_[place].keys.end());
}

void Batch::give_up(const Answer& answer) {
  const Failure& failure = *answer.failure;
  failed_ = true;
  error_ = describe(failure, describe_place(rows_.front()));
  kind_ = find_verdict(failure.sqlstate) == Verdict::retry ? Outcome::Kind::retry
                                                           : Outcome::Kind::blocked;
  undo(answer);
}

void Batch::append_outcomes(std::vector<Outcome>& outcomes) const {
  for (std::size_t place = 0; place < rows_.size(); ++place) {
    Outcome outcome{.token = rows_[place].token, .kind = Outcome::Kind::retry};
    if (failed_) {
      outcome.kind = kind_;
      outcome.error = error_;
    } else if (fates_[place] == Fate::refused) {
      outcome.kind = Outcome::Kind::rejected;
      outcome.error = errors_[place];
    } else if (fates_[place] == Fate::inserted && committed_) {
      outcome.kind = Outcome::Kind::acked;
    } else {
      outcome.error = fail(Errc::unavailable, Remedy::retry_call,
                           "postgres: not sent, since an event before it was refused")
                          .value();
    }
    outcomes.push_back(std::move(outcome));
  }
}

}  // namespace outbox::sink::postgres
