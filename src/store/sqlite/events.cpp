// Events and what became of them.
#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "store/history.hpp"
#include "store/sqlite/event_life.hpp"
#include "store/sqlite/event_row.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/queries.hpp"
#include "store/text.hpp"

namespace outbox::store::sqlite {
namespace {

constexpr std::int64_t kSecondUs = 1'000'000;
/// A range around an id's time in which the id's event is looked for. The ranges are tried from the
/// closest on, since the event may have been committed long after its id was made.
struct Around {
  std::int64_t before_us;
  std::int64_t after_us;
};
constexpr std::array<Around, 4> kAround{{{10'000, 100'000},
                                         {kSecondUs, 5 * kSecondUs},
                                         {60 * kSecondUs, 600 * kSecondUs},
                                         {3600 * kSecondUs, 86400 * kSecondUs}}};
/// How many of the newest events are searched for an id without a time.
constexpr std::int64_t kNewestForAnyId = 100'000;

/// The time of a UUIDv7, in microseconds since 1970.
std::optional<std::int64_t> read_time(const EventId& id) {
  if (id.bytes[6] >> 4U != 7U) return std::nullopt;
  std::int64_t ms = 0;
  for (std::size_t i = 0; i < 6; ++i) ms = ms * 256 + id.bytes.at(i);
  return ms * 1000;
}

class SqliteEvents final : public Events {
 public:
  explicit SqliteEvents(Connection connection) : connection_(std::move(connection)) {}

  [[nodiscard]] Result<EventPage> list(const EventFilter& filter, std::size_t limit,
                                       bool whole) override {
    EventPage page;
    OUTBOX_TRY(const EventLives lives, EventLives::of(connection_));
    const auto most = static_cast<std::int64_t>(limit);
    OUTBOX_TRY(filter.id ? list_by_id(*filter.id, most, lives, page)
                         : list_by_filter(filter, most, lives, page));
    if (!whole) {
      for (EventListing& event : page.events) {
        event.payload.clear();
        event.headers.clear();
      }
    }
    return page;
  }

 private:
  // ---- by id

  [[nodiscard]] Status list_by_id(const EventId& id, std::int64_t limit, const EventLives& lives,
                                  EventPage& page) {
    OUTBOX_TRY(const bool indexed, has_index("outbox_event_by_id"));
    page.complete = indexed;
    OUTBOX_TRY(const std::vector<std::int64_t> seqs, indexed ? by_index(id) : by_time(id));
    for (const std::int64_t seq : seqs) {
      OUTBOX_TRY(Statement row, connection_.query(query::kEventAt, seq, to_bytes(id)));
      OUTBOX_TRY(add_rows(std::move(row), true, id, lives, page));
    }
    // The id belongs to a corrected copy of a parked event, or to an event that is gone from the
    // log.
    if (seqs.empty()) {
      OUTBOX_TRY(Statement row, connection_.query(query::kParkedWithId, to_bytes(id)));
      OUTBOX_TRY(add_rows(std::move(row), false, id, lives, page));
    }
    std::reverse(page.events.begin(), page.events.end());
    if (std::cmp_greater(page.events.size(), limit))
      page.events.resize(static_cast<std::size_t>(limit));
    return {};
  }

  [[nodiscard]] Result<std::vector<std::int64_t>> by_index(const EventId& id) {
    return read_seqs(connection_.query(query::kSeqsWithId, to_bytes(id)));
  }

  [[nodiscard]] Result<std::vector<std::int64_t>> by_time(const EventId& id) {
    const auto at = read_time(id);
    if (!at) {
      OUTBOX_TRY(const std::int64_t newest, connection_.integer(query::kNewestSeq));
      return between(newest - kNewestForAnyId, newest + 1, id);
    }
    std::vector<std::int64_t> seqs;
    for (const auto& [before, after] : kAround) {
      OUTBOX_TRY(const std::int64_t low, seq_at(connection_, *at - before));
      OUTBOX_TRY(const std::int64_t high, seq_at(connection_, *at + after));
      OUTBOX_TRY(seqs, between(low, std::min(high, low + kMostSearched), id));
      if (!seqs.empty()) break;
    }
    return seqs;
  }

  [[nodiscard]] Result<std::vector<std::int64_t>> between(std::int64_t low, std::int64_t high,
                                                          const EventId& id) {
    return read_seqs(connection_.query(query::kSeqsBetweenWithId, low, high, to_bytes(id)));
  }

  [[nodiscard]] static Result<std::vector<std::int64_t>> read_seqs(Result<Statement> row) {
    if (!row) return pass(row);
    std::vector<std::int64_t> seqs;
    while (row->has_row()) {
      seqs.push_back(row->integer(0));
      OUTBOX_TRY(row->next());
    }
    return seqs;
  }

  // ---- by type, key and time

  [[nodiscard]] Status list_by_filter(const EventFilter& filter, std::int64_t limit,
                                      const EventLives& lives, EventPage& page) {
    OUTBOX_TRY(std::int64_t to, connection_.integer(query::kNewestSeq));
    OUTBOX_TRY(std::int64_t from, connection_.integer(query::kOldestSeq));
    --from;
    // A second is added on each side, since a clock may have gone back a little.
    if (filter.until_us) {
      OUTBOX_TRY(to, seq_at(connection_, *filter.until_us + kSecondUs));
    }
    if (filter.since_us) {
      OUTBOX_TRY(from, seq_at(connection_, *filter.since_us - kSecondUs));
      --from;
    }
    if (filter.before) to = std::min(to, *filter.before - 1);
    OUTBOX_TRY(const bool indexed, has_index("outbox_event_by_key"));
    const bool by_key = indexed && !filter.aggregate_id.empty();
    const bool all = by_key || to - from <= kMostSearched;
    if (!all) from = to - kMostSearched;
    {
      OUTBOX_TRY(Statement row,
                 connection_.query(
                     by_key ? query::kListKeyEvents : query::kListEvents, from, to,
                     filter.aggregate_type, filter.aggregate_id, filter.event_type,
                     filter.since_us.value_or(std::numeric_limits<std::int64_t>::min()),
                     filter.until_us.value_or(std::numeric_limits<std::int64_t>::max()), limit));
      OUTBOX_TRY(add_rows(std::move(row), true, std::nullopt, lives, page));
    }
    page.complete = all || std::cmp_equal(page.events.size(), limit);
    page.searched_from = from + 1;
    return {};
  }

  [[nodiscard]] Result<bool> has_index(std::string_view name) {
    OUTBOX_TRY(const Statement row, connection_.query(query::kHasIndex, name));
    return row.integer(0) != 0;
  }

  /// `id` is the id of the listed events, where the rows may be those of another event at the same
  /// seq.
  [[nodiscard]] static Status add_rows(Statement row, bool in_log, std::optional<EventId> id,
                                       const EventLives& lives, EventPage& page) {
    while (row.has_row()) {
      EventView event = read_view(row);
      const bool content_kept = !id || event.id == *id;
      event.id = id.value_or(event.id);
      EventListing listing{.seq = event.seq,
                           .id = event.id,
                           .aggregate_type = std::string(event.aggregate_type),
                           .aggregate_id = std::string(event.aggregate_id),
                           .event_type = std::string(event.event_type),
                           .content_type = std::string(event.content_type),
                           .created_at = event.created_at,
                           .occurred_at = event.occurred_at,
                           .in_log = in_log,
                           .content_kept = content_kept,
                           .payload = std::string(event.payload),
                           .headers = std::string(event.headers)};
      OUTBOX_TRY(listing.subscriptions, lives.read_life(event, in_log));
      page.events.push_back(std::move(listing));
      OUTBOX_TRY(row.next());
    }
    return {};
  }

  Connection connection_;
};

}  // namespace

std::unique_ptr<Events> make_events(Connection connection) {
  return std::make_unique<SqliteEvents>(std::move(connection));
}

Result<std::int64_t> seq_at(Connection& connection, std::int64_t time_us) {
  OUTBOX_TRY(std::int64_t low, connection.integer(query::kOldestSeq));
  OUTBOX_TRY(std::int64_t high, connection.integer(query::kNewestSeq));
  ++high;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    OUTBOX_TRY(const Statement row, connection.query(query::kCreatedFrom, middle, high));
    if (row.has_row() && row.integer(1) < time_us) {
      low = row.integer(0) + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace outbox::store::sqlite
