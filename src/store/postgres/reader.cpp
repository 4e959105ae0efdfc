#include "store/postgres/reader.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "store/common/page_request.hpp"

namespace outbox::store::postgres {
namespace {

using Clock = std::chrono::steady_clock;

// Columns of a page, in the order of queries.cpp.
enum Column : int {
  kSeq,
  kId,
  kAggregateType,
  kAggregateId,
  kEventType,
  kPayload,
  kBytes,
  kContentType,
  kHeaders,
  kCreated,
  kOccurred
};
constexpr int kFirstExtra = kOccurred + 1;
enum HeadColumn : int { kSnapshot = kFirstExtra, kSequence, kInsertLsn, kFlushLsn, kIncarnation };

/// Most rows ever asked for at once.
constexpr std::size_t kMostRows = 10000;
/// Longest wait for others to flush the log before we force it.
constexpr std::chrono::nanoseconds kLongestBarrier = std::chrono::milliseconds(2);

/// Everything that a page's views point into.
struct PageStorage {
  Rows rows;
  Rows big;
};

EventView view_of(const Rows& rows, int row) {
  EventView event;
  event.seq = rows.int8(row, kSeq);
  event.id = rows.uuid(row, kId);
  event.aggregate_type = rows.bytes(row, kAggregateType);
  event.aggregate_id = rows.bytes(row, kAggregateId);
  event.event_type = rows.bytes(row, kEventType);
  event.content_type = rows.bytes(row, kContentType);
  event.created_at_us = rows.time_us(row, kCreated);
  if (!rows.is_null(row, kOccurred)) event.occurred_at_us = rows.time_us(row, kOccurred);
  return event;
}

/// Payload or headers were left out, so that both are fetched by themselves.
bool is_big(const Rows& rows, int row) {
  return rows.is_null(row, kPayload) || rows.is_null(row, kHeaders);
}

void add_parts(EventView& event, std::string_view payload, std::string_view headers) {
  event.payload = payload;
  event.headers = headers;
  if (!event.headers.empty()) event.headers.remove_prefix(1);  // the version byte of binary jsonb
}

std::size_t size_of(const Rows& rows, int row) {
  auto size = static_cast<std::size_t>(rows.int4(row, kBytes)) + kEventOverhead;
  for (const Column column : {kAggregateType, kAggregateId, kEventType, kContentType, kHeaders})
    size += rows.bytes(row, column).size();
  return size;
}

/// Somebody deleted rows of the log after the page was read. Never skipped without a word; the next read does without them.
Error removed_meanwhile(const std::vector<std::int64_t>& seqs, const Rows& left) {
  std::vector<std::int64_t> missing;
  for (const std::int64_t seq : seqs) {
    bool found = false;
    for (int row = 0; row < left.size() && !found; ++row) found = left.int8(row, 0) == seq;
    if (!found) missing.push_back(seq);
  }
  return Error{.code = Errc::not_found,
               .remedy = Remedy::reconnect,
               .effect = Effect::none,
               .message = "somebody deleted " + std::to_string(missing.size()) +
                          " events that were not delivered, the first one with seq " +
                          std::to_string(missing.empty() ? seqs.front() : missing.front()),
               .hint =
                   "reading starts again from the settlements, without what was deleted; "
                   "never delete from the table event by hand",
               .origin = {}};
}

/// The pair ends in the present.
bool is_head(const PageRequest& request) { return request.cursor.drained() && !request.until; }

}  // namespace

// ---- before the first snapshot

Status PostgresReader::begin(std::span<const Cursor> /*cursors*/) {
  // After a crash of the server transaction ids and sequence values may be issued again: nothing known before holds.
  marks_->clear();
  if (Status status = check_wal_functions(); !status) return status;
  auto settings = connection_.exec(read_->settings_check);
  if (!settings) return pass(settings);
  settings_in_force_ = settings->boolean(0, 0);
  auto reading = load_marks();
  if (!reading) return pass(reading);
  auto w = write_mark(connection_, *queries_, *reading);
  if (!w) return pass(w);
  marks_->note(*w, reading->value);
  return {};
}

/// Some managed services refuse to say how far the log is; then every barrier is forced.
Status PostgresReader::check_wal_functions() {
  auto told = connection_.exec(read_->wal_positions);
  if (told) return {};
  const bool refused = told.error().origin == "pg:0A000" || told.error().origin == "pg:42501";
  if (!refused) return pass(told);
  *read_ = read_queries(schema_, false);
  return {};
}

/// The marks that are there, and then where the sequence stands: of one server, since it is one transaction.
Result<SequenceReading> PostgresReader::load_marks() {
  connection_.send(queries_->name_incarnation);
  connection_.send(read_->marks);
  connection_.send(queries_->sequence);
  auto results = connection_.finish();
  if (!results) return pass(results);
  const Rows& marks = (*results)[1];
  for (int row = 0; row < marks.size(); ++row)
    marks_->note(marks.uint64(row, 0), marks.int8(row, 1));
  auto reading = sequence_reading(results->back());
  if (!reading) return reading;
  marks_->read_from(reading->incarnation);
  if (Status status = check_sequence(reading->value, marks_->greatest()); !status)
    return pass(status);
  return reading;
}

/// Below a floor nothing is looked for: events numbered again from there would be skipped.
Status PostgresReader::check_sequence(std::int64_t value, std::int64_t reached) const {
  if (value >= reached) return {};
  const std::string name = quote_identifier(schema_) + ".event_seq";
  const std::string before = std::to_string(std::max(reached, marks_->greatest()));
  return fail(Errc::corrupt,
              "the sequence " + name + " stands at " + std::to_string(value) +
                  ", and had reached " + before + " before: it was set back",
              "stop the writers; SELECT setval('" + name + "', " + before +
                  "); then number again what was enqueued meanwhile: docs/stores/postgres.md, "
                  "\"A sequence that was set back\"");
}

// ---- the request

Status PostgresReader::start(const PageRequest& request) {
  if (Status status = check_request(request); !status) return status;
  if (connection_.pending()) {
    const bool expected = ahead_ && ahead_->cursor == request.cursor && !request.until;
    const PageRequest sent = std::exchange(ahead_, std::nullopt).value_or(PageRequest{});
    if (expected) {
      request_ = request;
      request_.rows = sent.rows;
      return {};
    }
    if (auto unwanted = connection_.collect(); !unwanted) return pass(unwanted);
  }
  request_ = request;
  return send(request_);
}

Status PostgresReader::send(const PageRequest& request) {
  auto s1 = parse_snapshot(request.cursor.s1);
  if (!s1) return pass(s1);
  auto params = params_of(request, *s1);
  if (!params) return pass(params);
  const bool lean = s1->xip.empty();
  if (is_head(request)) {
    send_page(lean ? read_->present_lean : read_->present, std::move(*params));
  } else {
    send_page(lean ? read_->bounded_lean : read_->bounded, std::move(*params));
  }
  return connection_.sync();
}

void PostgresReader::send_page(const Query& query, Params params) {
  // One statement outside a transaction is a transaction of its own; what it needs is either in force for this role, or
  // set for one transaction, which also works through a transaction pooler.
  if (settings_in_force_) {
    connection_.send(query, std::move(params));
    return;
  }
  connection_.send(queries_->begin);
  connection_.send(read_->settings);
  connection_.send(query, std::move(params));
  connection_.send(queries_->commit);
}

Result<Params> PostgresReader::params_of(const PageRequest& request, const Snapshot& s1) const {
  const Cursor& cursor = request.cursor;
  const std::int64_t late_position = cursor.drained() ? 0 : cursor.position;
  const std::int64_t position = std::max(marks_->floor(s1.xmax), late_position);
  const auto rows = static_cast<std::int64_t>(std::min(request.rows, rows_hint_));
  Params params;
  params.push_back(Param::text(std::to_string(s1.xmax)));
  params.push_back(Param::int8(position));
  params.push_back(Param::int8(rows));
  params.push_back(Param::text(array_text(s1.xip)));
  if (is_head(request)) return params;
  const std::string& s2_text = request.until ? request.until->s2 : cursor.s2;
  auto s2 = parse_snapshot(s2_text);
  if (!s2) return pass(s2);
  params.push_back(Param::text(s2_text));
  params.push_back(Param::text(std::to_string(s2->xmax)));
  params.push_back(Param::int8(request.until ? request.until->bound : cursor.bound));
  params.push_back(Param::int8(late_position));
  return params;
}

// ---- the answer

Result<Page> PostgresReader::finish() {
  const std::size_t asked = std::min(request_.rows, rows_hint_);
  auto results = connection_.collect();
  if (!results) return pass(results);
  Rows rows = std::move((*results)[settings_in_force_ ? 0 : 2]);
  Page page;
  page.from = request_.cursor.drained() ? 0 : request_.cursor.position;
  if (is_head(request_)) {
    if (Status status = take_head(rows, page); !status) return pass(status);
  } else {
    const Cursor& cursor = request_.cursor;
    auto s2 = parse_snapshot(request_.until ? request_.until->s2 : cursor.s2);
    if (!s2) return pass(s2);
    page.pair = std::make_shared<const Pair>(
        Pair{.s1 = cursor.s1,
             .s2 = request_.until ? request_.until->s2 : cursor.s2,
             .bound = request_.until ? request_.until->bound : cursor.bound,
             .horizon = s2->xmax});
    if (!rows.empty()) {
      if (Status status = check_incarnation(rows, kFirstExtra); !status) return pass(status);
    }
  }
  rows_asked_ = asked;
  if (Status status = fill(page, std::move(rows)); !status) return pass(status);
  return page;
}

/// The first page of a pair that ends in the present: its own snapshot is S2.
Status PostgresReader::take_head(const Rows& rows, Page& page) {
  Pair pair;
  pair.s1 = request_.cursor.s1;
  pair.s2 = rows.text(0, kSnapshot);
  pair.bound = rows.int8(0, kSequence);
  auto s2 = parse_snapshot(pair.s2);
  if (!s2) return pass(s2);
  pair.horizon = s2->xmax;
  Barrier barrier{.insert = ~std::uint64_t{0}, .flush = 0};
  if (!rows.is_null(0, kInsertLsn)) {
    barrier = {.insert = rows.uint64(0, kInsertLsn), .flush = rows.uint64(0, kFlushLsn)};
  }
  barrier_ = barrier;
  page.pair = std::make_shared<const Pair>(std::move(pair));
  if (Status status = check_incarnation(rows, kIncarnation); !status) return status;
  auto s1 = parse_snapshot(request_.cursor.s1);
  if (!s1) return pass(s1);
  const std::int64_t newest = rows.is_null(0, kSeq) ? 0 : rows.int8(rows.size() - 1, kSeq);
  return check_sequence(page.pair->bound, std::max(newest, marks_->floor(s1->xmax)));
}

/// Behind a pooler a crash of the server, or another server, does not break our connection.
Status PostgresReader::check_incarnation(const Rows& rows, int column) const {
  if (!rows.is_null(0, column) && rows.int8(0, column) == marks_->incarnation()) return {};
  return fail(other_incarnation());
}

Status PostgresReader::fill(Page& page, Rows rows) {
  const auto storage =
      std::make_shared<PageStorage>(PageStorage{.rows = std::move(rows), .big = {}});
  const Rows& read = storage->rows;
  const int available = read.empty() || read.is_null(0, kSeq) ? 0 : read.size();
  const int taken = cut(read, available, page.bytes);
  const bool whole = taken == available;
  page.drained = whole && static_cast<std::size_t>(available) < rows_asked_;
  page.position = taken == 0 ? page.from : read.int8(taken - 1, kSeq);
  if (!whole) {
    rows_hint_ = static_cast<std::size_t>(taken);
  } else if (page.bytes <= request_.bytes / 2) {
    rows_hint_ = std::min(rows_hint_ * 2, kMostRows);
  }
  if (Status status = fetch_big_parts(storage->big, read, taken); !status) return status;
  // At the head the barrier comes first, on this connection.
  if (request_.ahead && !is_head(request_) && whole && !page.drained) {
    if (Status status = send_ahead(page); !status) return status;
  }
  page.events.reserve(static_cast<std::size_t>(taken));
  for (int row = 0, big = 0; row < taken; ++row) {
    EventView event = view_of(read, row);
    if (is_big(read, row)) {
      add_parts(event, storage->big.bytes(big, 1), storage->big.bytes(big, 2));
      ++big;
    } else {
      add_parts(event, read.bytes(row, kPayload), read.bytes(row, kHeaders));
    }
    page.events.push_back(event);
  }
  page.storage = storage;
  return {};
}

/// The server works on the next page while this one is decoded and delivered.
Status PostgresReader::send_ahead(const Page& page) {
  PageRequest next = request_;
  next.cursor = {.s1 = page.pair->s1,
                 .s2 = page.pair->s2,
                 .position = page.position,
                 .bound = page.pair->bound};
  next.until = nullptr;
  if (Status status = send(next); !status) return status;
  ahead_ = std::move(next);
  return {};
}

/// How many rows fit into the byte limit; at least one.
int PostgresReader::cut(const Rows& rows, int available, std::size_t& bytes) const {
  for (int row = 0; row < available; ++row) {
    const std::size_t size = size_of(rows, row);
    if (row > 0 && bytes + size > request_.bytes) return row;
    bytes += size;
  }
  return available;
}

/// Rows of `read` of which something was left out, in the same order.
Status PostgresReader::fetch_big_parts(Rows& big, const Rows& read, int count) {
  std::vector<std::int64_t> seqs;
  for (int row = 0; row < count; ++row) {
    if (is_big(read, row)) seqs.push_back(read.int8(row, kSeq));
  }
  if (seqs.empty()) return {};
  Params params;
  params.push_back(Param::int8_array(seqs));
  auto rows = connection_.exec(read_->big_parts, std::move(params));
  if (!rows) return pass(rows);
  if (static_cast<std::size_t>(rows->size()) != seqs.size())
    return fail(removed_meanwhile(seqs, *rows));
  big = std::move(*rows);
  return {};
}

// ---- the flush barrier (P3)

Status PostgresReader::wait_durable() {
  if (!barrier_) return {};
  const auto passed = [this] { return barrier_->flush >= barrier_->insert; };
  if (!passed()) {
    // Somebody's commit is likely to flush the log soon; otherwise one of ours does.
    std::this_thread::sleep_for(std::min(kLongestBarrier, 2 * flush_takes_));
    auto now = flushed();
    if (!now) return pass(now);
    if (!*now) {
      if (Status status = force_flush(); !status) return status;
    }
  }
  barrier_.reset();
  return {};
}

Result<bool> PostgresReader::flushed() {
  if (barrier_->insert == ~std::uint64_t{0}) return false;  // the server does not tell
  auto rows = connection_.exec(read_->wal_positions);
  if (!rows) return pass(rows);
  if (Status status = check_incarnation(*rows, 2); !status) return pass(status);
  return rows->uint64(0, 1) >= barrier_->insert;
}

Status PostgresReader::force_flush() {
  const auto before = Clock::now();
  connection_.send(queries_->begin);
  connection_.send(queries_->flushed_here);
  connection_.send(read_->force_flush);
  connection_.send(queries_->commit);
  auto done = connection_.finish();
  if (!done) return pass(done);
  if (Status status = check_incarnation((*done)[2], 0); !status) return status;
  flush_takes_ = (flush_takes_ * 7 + (Clock::now() - before)) / 8;
  return {};
}

}  // namespace outbox::store::postgres
