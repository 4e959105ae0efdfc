#include "store/postgres/marks.hpp"

#include <iterator>

#include "base/error.hpp"

namespace outbox::store::postgres {
namespace {

/// A floor may be lower than it could be, never higher: forgetting marks costs time, not events.
constexpr std::size_t kMostMarks = 4096;

}  // namespace

void MarkBook::note(std::uint64_t w, std::int64_t l) {
  const MutexLock lock(mutex_);
  const auto after = marks_.upper_bound(w);
  if (after != marks_.begin() && std::prev(after)->second >= l)
    return;  // an earlier mark implies it
  auto at = marks_.insert_or_assign(after, w, l);
  for (auto later = std::next(at); later != marks_.end() && later->second <= l;)
    later = marks_.erase(later);
  if (marks_.size() <= kMostMarks) return;
  // Thin out the older half.
  auto it = marks_.begin();
  for (std::size_t i = 0; i < kMostMarks / 4; ++i) it = std::next(marks_.erase(it));
}

std::int64_t MarkBook::floor(std::uint64_t xmax) const {
  const MutexLock lock(mutex_);
  const auto after = marks_.lower_bound(xmax);  // w < xmax
  return after == marks_.begin() ? 0 : std::prev(after)->second;
}

std::int64_t MarkBook::greatest() const {
  const MutexLock lock(mutex_);
  return marks_.empty() ? 0 : marks_.rbegin()->second;
}

void MarkBook::read_from(std::int64_t incarnation) {
  const MutexLock lock(mutex_);
  incarnation_ = incarnation;
}

std::optional<std::int64_t> MarkBook::incarnation() const {
  const MutexLock lock(mutex_);
  return incarnation_;
}

void MarkBook::clear() {
  const MutexLock lock(mutex_);
  marks_.clear();
  incarnation_.reset();
}

tl::unexpected<Error> other_incarnation() {
  return fail(Errc::unavailable, Remedy::reconnect,
              "the database server crashed or was replaced while the relay read from it",
              "reading starts again from the settlements");
}

Result<SequenceReading> sequence_reading(const Rows& rows) {
  if (rows.is_null(0, 1)) return other_incarnation();
  return SequenceReading{.value = rows.int8(0, 0), .incarnation = rows.int8(0, 1)};
}

Result<SequenceReading> read_sequence(Connection& connection) {
  connection.send(&Queries::name_incarnation);
  connection.send(&Queries::sequence);
  OUTBOX_TRY(const auto results, connection.finish());
  return sequence_reading(results.back());
}

Result<std::uint64_t> write_mark(Connection& connection, const SequenceReading& reading) {
  OUTBOX_TRY(const Rows mark, connection.exec_with(&Queries::flushed_here, &Queries::mark,
                                                   {reading.value, reading.incarnation}));
  return mark.uint64(0, 0);
}

}  // namespace outbox::store::postgres
