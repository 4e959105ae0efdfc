#include "sim/groups/reader.hpp"

#include <algorithm>

namespace outbox::sim {

void SimReader::remove_all() {
  readings_.clear();
  page_.reset();
  newest_.reset();
  turn_ = 0;
}

bool SimReader::step(bool has_room, const Take& take) {
  if (incarnation_ && *incarnation_ != database_.incarnation()) return false;
  if (!begun_) {
    begin();
  } else if (page_) {
    pass_page(take);
  } else if (turn_ < readings_.size()) {
    if (has_room) fetch(readings_[turn_]);
    ++turn_;
  } else {
    turn_ = 0;
    newest_.reset();
  }
  return true;
}

/// As in PostgresReader::begin(), reads the existing marks and writes one of its own. The l of that
/// mark is read before the transaction that writes it begins.
void SimReader::begin() {
  if (!sequence_) {
    incarnation_ = database_.incarnation();
    sequence_ = database_.sequence();
    return;
  }
  mark_xid_ = database_.begin();
  for (const auto& [w, l] : tables_.marks()) marks_.note(w, l);
  tables_.mark(mark_xid_, *sequence_);
  marks_.note(mark_xid_, *sequence_);
  begun_ = true;
}

/// Like the query `present`, which reads rows and S2 in one statement, or like `bounded` if S2 and
/// its bound are known.
void SimReader::fetch(const Reading& reading) {
  const store::Cursor& cursor = reading.cursor;
  begins_pair_ = cursor.drained();
  store::Pair pair{.s1 = cursor.s1, .s2 = cursor.s2, .bound = cursor.bound};
  if (begins_pair_ && newest_) {
    pair.s2 = newest_->s2;
    pair.bound = newest_->bound;
  } else if (begins_pair_) {
    pair.s2 = text_of(database_.snapshot());
    pair.bound = database_.sequence();
  }
  const auto s1 = snapshot_of(pair.s1);
  const auto s2 = snapshot_of(pair.s2);
  pair.horizon = s2->xmax;
  page_ = std::make_shared<store::Page>();
  page_->from = begins_pair_ ? 0 : cursor.position;
  page_->position = page_->from;
  const std::size_t asked = 1 + random_.below(9);
  const auto rows = rows_of(reading, *s1, *s2, pair.bound);
  page_->drained = rows.size() < asked;
  for (std::size_t i = 0; i < std::min(asked, rows.size()); ++i) {
    page_->events.push_back(database_.event(rows[i]).view);
    page_->position = page_->events.back().seq;
    page_->bytes += 10;
  }
  page_->pair = std::make_shared<const store::Pair>(std::move(pair));
}

/// The rows of two streams: transactions from xmax(S1) on, above the floor, and transactions that
/// were in progress in S1, from 0.
std::vector<std::size_t> SimReader::rows_of(const Reading& reading, const store::Visible& s1,
                                            const store::Visible& s2, std::int64_t bound) const {
  const std::int64_t late_position = reading.cursor.drained() ? 0 : reading.cursor.position;
  const std::int64_t position = std::max(marks_.floor(s1.xmax), late_position);
  std::vector<std::size_t> rows;
  for (const std::size_t number : database_.rows()) {
    const WrittenEvent& event = database_.event(number);
    if ((reading.lanes >> event.lane & 1U) == 0 || event.view.seq > bound) continue;
    if (!database_.sees(s2, event.xid)) continue;
    const bool was_running = std::binary_search(s1.running.begin(), s1.running.end(), event.xid);
    if (was_running ? event.view.seq > late_position
                    : event.xid >= s1.xmax && event.view.seq > position)
      rows.push_back(number);
  }
  return rows;
}

/// Pump::fetch(): behind the barrier, also when nothing was read.
void SimReader::pass_page(const Take& take) {
  if (database_.flushed() < database_.inserted()) database_.flush();
  const auto page = std::move(page_);
  Reading& reading = readings_[turn_ - 1];
  if (begins_pair_ && !newest_) newest_ = page->pair;
  reading.cursor = page->end();
  take(reading.strand, page);
}

}  // namespace outbox::sim
