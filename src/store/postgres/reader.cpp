// Reads pairs of snapshots page by page (docs/design/reading.md).
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/count.hpp"
#include "base/error.hpp"
#include "pg/identifier.hpp"
#include "store/postgres/event_row.hpp"
#include "store/postgres/parts.hpp"
#include "store/postgres/read_ahead.hpp"
#include "store/postgres/snapshot.hpp"

namespace outbox::store::postgres {
namespace {

using Clock = std::chrono::steady_clock;

/// The columns behind those of the event.
enum HeadColumn : int {
  kHeadSnapshot = kFirstExtra,
  kHeadSequence,
  kHeadInsertLsn,
  kHeadFlushLsn,
  kHeadIncarnation
};

/// The most rows of one request.
constexpr std::size_t kMostRowsRead = 10000;
/// A position in the WAL when the server refuses the WAL functions.
constexpr std::uint64_t kUnknown = ~std::uint64_t{0};
/// The longest wait for others to flush the log before we force it.
constexpr std::chrono::nanoseconds kLongestBarrier = std::chrono::milliseconds(2);

/// Everything that a page's views point into.
struct PageStorage {
  Rows rows;
  Rows big;
};

/// Whether payload or headers were left out; then both are fetched separately.
bool is_big(const Rows& rows, int row) {
  return rows.is_null(row, kPayload) || rows.is_null(row, kHeaders);
}

std::size_t count_bytes(const Rows& rows, int row) {
  auto size = static_cast<std::size_t>(rows.int4(row, kBytes)) + kEventOverhead;
  for (const EventColumn column :
       {kAggregateType, kAggregateId, kEventType, kContentType, kHeaders})
    size += rows.bytes(row, column).size();
  return size;
}

std::string lsn_text(std::uint64_t position) {
  return fmt::format("{:X}/{:X}", position >> 32U, position & 0xFFFFFFFFU);
}

/// Rows of the log were deleted after the page was read. This is reported, never skipped silently;
/// the next read continues without them.
tl::unexpected<Error> removed_meanwhile(const std::vector<std::int64_t>& seqs, const Rows& left) {
  std::vector<std::int64_t> missing = seqs;
  for (int row = 0; row < left.size(); ++row) std::erase(missing, left.int8(row, 0));
  const std::int64_t first = missing.empty() ? seqs.front() : missing.front();
  return fail(Errc::not_found, Remedy::reconnect,
              count("event", missing.size(), "was", "were") +
                  " deleted before delivery, the first one with seq " + std::to_string(first),
              "reading starts again from the settlements, without what was deleted; never delete "
              "from the table event by hand");
}

/// Whether the pair ends in the present.
bool is_head(const PageRequest& request) { return request.cursor.drained() && !request.until; }

/// `lean` says that nothing was in progress in S1.
Connection::Named statement_for(const PageRequest& request, bool lean) {
  if (request.lanes == kAllLanes) {
    if (is_head(request)) return lean ? &Queries::present_lean : &Queries::present;
    return lean ? &Queries::bounded_lean : &Queries::bounded;
  }
  if (is_head(request)) return lean ? &Queries::present_lean_of_lanes : &Queries::present_of_lanes;
  return lean ? &Queries::bounded_lean_of_lanes : &Queries::bounded_of_lanes;
}

/// The pair of a request whose end is known.
Result<Pair> bounded_pair(const PageRequest& request) {
  const Cursor& cursor = request.cursor;
  Pair pair{.s1 = cursor.s1,
            .s2 = request.until ? request.until->s2 : cursor.s2,
            .bound = request.until ? request.until->bound : cursor.bound};
  OUTBOX_TRY(const Snapshot s2, parse_snapshot(pair.s2));
  pair.horizon = s2.xmax;
  return pair;
}

class PostgresReader final : public LogReader {
 public:
  PostgresReader(Connection connection, std::shared_ptr<MarkBook> marks,
                 std::function<Result<Connection>()> connect)
      : connection_(std::move(connection)),
        marks_(std::move(marks)),
        read_ahead_(std::move(connect)) {}

  [[nodiscard]] Status begin(std::span<const Cursor> /*cursors*/) override {
    // After a crash the server may issue transaction ids and sequence values again: earlier marks
    // do not hold.
    marks_->clear();
    OUTBOX_TRY(check_wal_functions());
    OUTBOX_TRY(const Rows settings, connection_.exec(&Queries::settings_check));
    settings_in_force_ = settings.boolean(0, 0);
    OUTBOX_TRY(const SequenceReading reading, load_marks());
    OUTBOX_TRY(const std::uint64_t w, write_mark(connection_, reading));
    marks_->note(w, reading.value);
    return {};
  }

  [[nodiscard]] Status start(const PageRequest& request) override {
    if (connection_.pending()) {
      const bool expected = ahead_ && ahead_->lanes == request.lanes &&
                            ahead_->cursor == request.cursor && !request.until;
      const PageRequest sent = std::exchange(ahead_, std::nullopt).value_or(PageRequest{});
      if (expected) {
        request_ = request;
        request_.rows = sent.rows;
        return {};
      }
      OUTBOX_TRY(connection_.collect());
    }
    request_ = request;
    return send(request_);
  }

  [[nodiscard]] Result<Page> finish() override {
    const std::size_t asked = std::min(request_.rows, rows_hint_);
    OUTBOX_TRY(auto results, connection_.collect());
    Rows rows = std::move(results[settings_in_force_ ? 0 : 2]);
    Page page;
    page.from = request_.cursor.drained() ? 0 : request_.cursor.position;
    if (is_head(request_)) {
      OUTBOX_TRY(take_head(rows, page));
    } else {
      OUTBOX_TRY(Pair pair, bounded_pair(request_));
      page.pair = std::make_shared<const Pair>(std::move(pair));
      if (!rows.empty()) {
        OUTBOX_TRY(check_incarnation(rows, kFirstExtra));
      }
    }
    OUTBOX_TRY(fill(page, std::move(rows), asked));
    if (!page.drained) read_ahead_.follow(page.position, page.pair->bound);
    return page;
  }

  [[nodiscard]] Status wait_durable() override {
    if (!barrier_) return {};
    if (barrier_->flush < barrier_->insert) {
      // Another commit will probably flush the log soon; otherwise one of ours does.
      std::this_thread::sleep_for(std::min(kLongestBarrier, 2 * flush_takes_));
      OUTBOX_TRY(const bool passed, flushed());
      if (!passed) {
        OUTBOX_TRY(force_flush());
      }
    }
    barrier_.reset();
    return {};
  }

  [[nodiscard]] Result<Replication> replication(const Standbys& standbys) override {
    if (replicate_to_ == kUnknown) {
      return fail(Errc::unsupported,
                  "this server does not say how far its log is, so that nothing can be known of "
                  "standbys",
                  "set relay.publish_after to \"flushed\"");
    }
    ArrayParam names(ArrayParam::Element::text);
    for (const std::string& name : standbys.names) names.add(name);
    OUTBOX_TRY(const Rows rows,
               connection_.exec(&Queries::replication, {lsn_text(replicate_to_), names.take()}));
    OUTBOX_TRY(check_incarnation(rows, 3));
    return Replication{.flushed = static_cast<std::size_t>(rows.int8(0, 0)),
                       .connected = static_cast<std::size_t>(rows.int8(0, 1)),
                       .hidden = rows.boolean(0, 2)};
  }

  [[nodiscard]] std::uint64_t statements() const override {
    return connection_.statements() + read_ahead_.statements();
  }

 private:
  /// The transactions that are visible in the newest S2 have written the log only up to `insert`.
  struct Barrier {
    std::uint64_t insert{0};
    std::uint64_t flush{0};
  };

  /// Some managed services refuse the WAL functions; then every barrier is forced.
  [[nodiscard]] Status check_wal_functions() {
    replicate_to_ = kUnknown;
    auto positions = connection_.exec(&Queries::wal_positions);
    if (positions) {
      replicate_to_ = positions->uint64(0, 0);
      return {};
    }
    const std::string& origin = positions.error().origin;
    if (origin != "pg:0A000" && origin != "pg:42501") return pass(positions);
    connection_.use(std::make_shared<const Queries>(connection_.queries().schema, false));
    return {};
  }

  /// Reads the marks and then the value of the sequence. Both are of one server, since this is one
  /// transaction.
  [[nodiscard]] Result<SequenceReading> load_marks() {
    connection_.send(&Queries::name_incarnation);
    connection_.send(&Queries::marks);
    connection_.send(&Queries::sequence);
    OUTBOX_TRY(const auto results, connection_.finish());
    const Rows& marks = results[1];
    for (int row = 0; row < marks.size(); ++row)
      marks_->note(marks.uint64(row, 0), marks.int8(row, 1));
    OUTBOX_TRY(const SequenceReading reading, sequence_reading(results.back()));
    marks_->read_from(reading.incarnation);
    OUTBOX_TRY(check_sequence(reading.value, marks_->greatest()));
    return reading;
  }

  /// Fails if the sequence was set back. Nothing is read below a floor, so events that get its
  /// numbers again would be skipped.
  [[nodiscard]] Status check_sequence(std::int64_t value, std::int64_t reached) const {
    if (value >= reached) return {};
    const std::string name = pg::quote_identifier(connection_.queries().schema) + ".event_seq";
    const std::string before = std::to_string(std::max(reached, marks_->greatest()));
    return fail(Errc::corrupt,
                "the sequence " + name + " stands at " + std::to_string(value) +
                    ", and had reached " + before + " before: it was set back",
                "stop the writers; SELECT setval('" + name + "', " + before +
                    "); then number again what was enqueued meanwhile: docs/stores/postgres.md, "
                    "\"A sequence that was set back\"");
  }

  [[nodiscard]] Status send(const PageRequest& request) {
    OUTBOX_TRY(const Snapshot s1, parse_snapshot(request.cursor.s1));
    OUTBOX_TRY(Params params, make_params(request, s1));
    const auto query = statement_for(request, s1.xip.empty());
    // One statement outside a transaction is a transaction of its own. Its settings are in force
    // for this role already, or are set for one transaction, which also works through a transaction
    // pooler.
    if (!settings_in_force_) {
      connection_.send(&Queries::begin);
      connection_.send(&Queries::settings);
    }
    connection_.send(query, std::move(params));
    if (!settings_in_force_) connection_.send(&Queries::commit);
    return connection_.sync();
  }

  [[nodiscard]] Result<Params> make_params(const PageRequest& request, const Snapshot& s1) const {
    const Cursor& cursor = request.cursor;
    const std::int64_t late_position = cursor.drained() ? 0 : cursor.position;
    const std::int64_t position = std::max(marks_->floor(s1.xmax), late_position);
    const auto rows = static_cast<std::int64_t>(std::min(request.rows, rows_hint_));
    Params params{std::to_string(s1.xmax), position, rows, Param::xid8_array(s1.xip)};
    if (!is_head(request)) {
      OUTBOX_TRY(const Pair pair, bounded_pair(request));
      params.push_back(pair.s2);
      params.push_back(std::to_string(pair.horizon));
      params.push_back(pair.bound);
      params.push_back(late_position);
    }
    if (request.lanes != kAllLanes) params.push_back(static_cast<std::int64_t>(request.lanes));
    return params;
  }

  /// Takes S2 from the first page of a pair that ends in the present: S2 is the page's own
  /// snapshot.
  [[nodiscard]] Status take_head(const Rows& rows, Page& page) {
    Pair pair;
    pair.s1 = request_.cursor.s1;
    pair.s2 = rows.text(0, kHeadSnapshot);
    pair.bound = rows.int8(0, kHeadSequence);
    OUTBOX_TRY(const Snapshot s2, parse_snapshot(pair.s2));
    pair.horizon = s2.xmax;
    barrier_ = Barrier{.insert = kUnknown, .flush = 0};
    if (!rows.is_null(0, kHeadInsertLsn))
      barrier_ = {.insert = rows.uint64(0, kHeadInsertLsn), .flush = rows.uint64(0, kHeadFlushLsn)};
    replicate_to_ = barrier_->insert;
    page.pair = std::make_shared<const Pair>(std::move(pair));
    OUTBOX_TRY(check_incarnation(rows, kHeadIncarnation));
    OUTBOX_TRY(const Snapshot s1, parse_snapshot(request_.cursor.s1));
    const std::int64_t newest = rows.is_null(0, kSeq) ? 0 : rows.int8(rows.size() - 1, kSeq);
    return check_sequence(page.pair->bound, std::max(newest, marks_->floor(s1.xmax)));
  }

  /// Behind a pooler, a crash of the server or its replacement does not break our connection.
  [[nodiscard]] Status check_incarnation(const Rows& rows, int column) const {
    if (!rows.is_null(0, column) && rows.int8(0, column) == marks_->incarnation()) return {};
    return other_incarnation();
  }

  /// `asked` is the number of rows that were requested.
  [[nodiscard]] Status fill(Page& page, Rows rows, std::size_t asked) {
    const auto storage =
        std::make_shared<PageStorage>(PageStorage{.rows = std::move(rows), .big = {}});
    const Rows& read = storage->rows;
    const int available = read.empty() || read.is_null(0, kSeq) ? 0 : read.size();
    const int taken = cut(read, available, page.bytes);
    const bool whole = taken == available;
    page.drained = whole && static_cast<std::size_t>(available) < asked;
    page.position = taken == 0 ? page.from : read.int8(taken - 1, kSeq);
    if (!whole) {
      rows_hint_ = static_cast<std::size_t>(taken);
    } else if (page.bytes <= request_.bytes / 2) {
      rows_hint_ = std::min(rows_hint_ * 2, kMostRowsRead);
    }
    OUTBOX_TRY(fetch_big_parts(storage->big, read, taken));
    // At the head nothing is sent ahead, since this connection is needed for the barrier first.
    if (request_.ahead && !is_head(request_) && whole && !page.drained) {
      OUTBOX_TRY(send_ahead(page));
    }
    page.events.reserve(static_cast<std::size_t>(taken));
    for (int row = 0, big = 0; row < taken; ++row) {
      EventView event = read_view(read, row);
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

  /// Fetches payload and headers of the rows of `read` that lack them, in the same order.
  [[nodiscard]] Status fetch_big_parts(Rows& big, const Rows& read, int count) {
    std::vector<std::int64_t> seqs;
    for (int row = 0; row < count; ++row) {
      if (is_big(read, row)) seqs.push_back(read.int8(row, kSeq));
    }
    if (seqs.empty()) return {};
    OUTBOX_TRY(big, connection_.exec(&Queries::big_parts, {Param::int8_array(seqs)}));
    return static_cast<std::size_t>(big.size()) == seqs.size() ? Status{}
                                                               : removed_meanwhile(seqs, big);
  }

  /// The server works on the next page while this one is decoded and delivered.
  [[nodiscard]] Status send_ahead(const Page& page) {
    PageRequest next = request_;
    next.cursor = page.end();
    next.until = nullptr;
    OUTBOX_TRY(send(next));
    ahead_ = std::move(next);
    return {};
  }

  /// How many rows fit into the byte limit; at least one.
  [[nodiscard]] int cut(const Rows& rows, int available, std::size_t& bytes) const {
    for (int row = 0; row < available; ++row) {
      const std::size_t size = count_bytes(rows, row);
      if (row > 0 && bytes + size > request_.bytes) return row;
      bytes += size;
    }
    return available;
  }

  [[nodiscard]] Result<bool> flushed() {
    if (barrier_->insert == kUnknown) return false;
    OUTBOX_TRY(const Rows rows, connection_.exec(&Queries::wal_positions));
    OUTBOX_TRY(check_incarnation(rows, 2));
    return rows.uint64(0, 1) >= barrier_->insert;
  }

  [[nodiscard]] Status force_flush() {
    const auto before = Clock::now();
    OUTBOX_TRY(const Rows done,
               connection_.exec_with(&Queries::flushed_here, &Queries::force_flush));
    OUTBOX_TRY(check_incarnation(done, 0));
    flush_takes_ = (flush_takes_ * 7 + (Clock::now() - before)) / 8;
    return {};
  }

  Connection connection_;
  std::shared_ptr<MarkBook> marks_;
  ReadAhead read_ahead_;
  bool settings_in_force_{false};

  PageRequest request_;               ///< What finish() will answer.
  std::optional<PageRequest> ahead_;  ///< The request that was sent ahead of start().
  std::size_t rows_hint_{10000};      ///< It is lower after a page that ran into the byte limit.
  std::optional<Barrier> barrier_;
  std::uint64_t replicate_to_{kUnknown};  ///< Where replication() asks for.
  std::chrono::nanoseconds flush_takes_{std::chrono::microseconds(500)};
};

}  // namespace

std::unique_ptr<LogReader> make_reader(Connection connection, std::shared_ptr<MarkBook> marks,
                                       std::function<Result<Connection>()> connect) {
  return std::make_unique<PostgresReader>(std::move(connection), std::move(marks),
                                          std::move(connect));
}

}  // namespace outbox::store::postgres
