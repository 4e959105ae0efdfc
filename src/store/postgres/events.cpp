// Events and what became of them, read with the functions of 0005_status.sql.
#include <map>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "event/time_text.hpp"
#include "store/history.hpp"
#include "store/postgres/parts.hpp"

namespace outbox::store::postgres {
namespace {

EventListing read_event_listing(const Rows& rows, int row) {
  EventListing event{.seq = rows.int8(row, 0),
                     .id = rows.uuid(row, 1),
                     .aggregate_type = rows.text(row, 4),
                     .aggregate_id = rows.text(row, 5),
                     .event_type = rows.text(row, 6),
                     .content_type = rows.text(row, 7),
                     .created_at = event::timestamp(rows.time_us(row, 8)),
                     .in_log = rows.boolean(row, 2),
                     .content_kept = rows.boolean(row, 3),
                     .payload = rows.text(row, 10),
                     .headers = rows.text(row, 11)};
  if (!rows.is_null(row, 9)) event.occurred_at = event::timestamp(rows.time_us(row, 9));
  return event;
}

EventLife read_life(const Rows& rows, int row) {
  EventLife life{.subscription = rows.text(row, 2),
                 .state = rows.text(row, 3),
                 .error = rows.text(row, 7),
                 .ended_by = rows.text(row, 10),
                 .reason = rows.text(row, 11)};
  if (!rows.is_null(row, 4)) life.published_by_us = rows.time_us(row, 4);
  if (!rows.is_null(row, 5)) life.attempts = rows.int4(row, 5);
  if (!rows.is_null(row, 6)) life.next_attempt_at_us = rows.time_us(row, 6);
  if (!rows.is_null(row, 8)) life.waiting_for = rows.uuid(row, 8);
  if (!rows.is_null(row, 9)) life.waiting_for_seq = rows.int8(row, 9);
  if (!rows.is_null(row, 12)) life.replaced_by = rows.uuid(row, 12);
  return life;
}

class PostgresEvents final : public Events {
 public:
  explicit PostgresEvents(Connection connection) : connection_(std::move(connection)) {}

  [[nodiscard]] Result<EventPage> list(const EventFilter& filter, std::size_t limit,
                                       bool whole) override {
    EventPage page;
    OUTBOX_TRY(const std::vector<std::int64_t> seqs, find(filter, limit, page));
    if (seqs.empty()) return page;
    OUTBOX_TRY(const Rows rows, read(&Queries::describe_events,
                                     {Param::int8_array(seqs),
                                      filter.id ? Param(*filter.id) : Param::null(), whole}));
    page.events = rows.list([&](int row) { return read_event_listing(rows, row); });
    OUTBOX_TRY(add_life(page.events));
    return page;
  }

 private:
  [[nodiscard]] Result<Rows> read(Connection::Named query, Params params) {
    return connection_.exec_with(&Queries::plan_settings, query, std::move(params));
  }

  /// Sets in `page` whether all events were looked at.
  [[nodiscard]] Result<std::vector<std::int64_t>> find(const EventFilter& filter, std::size_t limit,
                                                       EventPage& page) {
    const auto most = static_cast<std::int64_t>(limit);
    OUTBOX_TRY(const Rows range, read(&Queries::event_range, {Param::time_us(filter.since_us),
                                                              Param::time_us(filter.until_us)}));
    if (filter.id) {
      page.complete = range.boolean(0, 4);
      return read_seqs(read(&Queries::find_event, {*filter.id, most}));
    }
    const bool by_key = !filter.aggregate_id.empty() && range.boolean(0, 3);
    std::int64_t to = range.int8(0, 1);
    if (filter.before) to = std::min(to, *filter.before - 1);
    std::int64_t from = std::max(range.int8(0, 0), range.int8(0, 2) - 1);
    const bool all = by_key || to - from <= kMostSearched;
    if (!all) from = to - kMostSearched;
    auto found = read_seqs(
        read(by_key ? &Queries::list_key_events : &Queries::list_events,
             {from, to, Param::text_or_null(filter.aggregate_type),
              Param::text_or_null(filter.aggregate_id), Param::text_or_null(filter.event_type),
              Param::time_us(filter.since_us), Param::time_us(filter.until_us), most}));
    page.complete = all || (found && found->size() == limit);
    page.searched_from = from + 1;
    return found;
  }

  [[nodiscard]] static Result<std::vector<std::int64_t>> read_seqs(Result<Rows> rows) {
    if (!rows) return pass(rows);
    return rows->list([&](int row) { return rows->int8(row, 0); });
  }

  [[nodiscard]] Status add_life(std::vector<EventListing>& events) {
    std::map<std::pair<std::int64_t, EventId>, EventListing*> known;
    ArrayParam seqs(ArrayParam::Element::int8);
    ArrayParam ids(ArrayParam::Element::uuid);
    for (EventListing& event : events) {
      known.emplace(std::pair(event.seq, event.id), &event);
      seqs.add(event.seq);
      ids.add(event.id);
    }
    OUTBOX_TRY(const Rows rows, read(&Queries::event_life, {seqs.take(), ids.take()}));
    for (int row = 0; row < rows.size(); ++row) {
      known.at({rows.int8(row, 0), rows.uuid(row, 1)})
          ->subscriptions.push_back(read_life(rows, row));
    }
    return {};
  }

  Connection connection_;
};

}  // namespace

std::unique_ptr<Events> make_events(Connection connection) {
  return std::make_unique<PostgresEvents>(std::move(connection));
}

}  // namespace outbox::store::postgres
