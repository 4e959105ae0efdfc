// Replays, with the functions of 0007_replay.sql.
#include "store/replay.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "store/postgres/event_row.hpp"
#include "store/postgres/parts.hpp"
#include "store/postgres/replay_queries.hpp"
#include "store/postgres/snapshot.hpp"
#include "store/sql/audit.hpp"
#include "store/sql/parts.hpp"

namespace outbox::store::postgres {
namespace {

enum PageColumn : int { kPageHeld = kFirstExtra, kPageFound };

class PostgresReplays final : public sql::Replays {
 public:
  explicit PostgresReplays(std::unique_ptr<Connection> connection)
      : sql::Replays(std::move(connection)), connection_(static_cast<Connection&>(db())) {}

  [[nodiscard]] Result<std::int64_t> seq_at(std::int64_t time_us) override {
    OUTBOX_TRY(const Rows rows, read(queries_.seq_at, {Param::time_us(time_us)}));
    return rows.int8(0, 0);
  }

  [[nodiscard]] Result<std::int64_t> load(std::int64_t replay,
                                          std::span<const EventView> events) override {
    using Element = ArrayParam::Element;
    ArrayParam seqs(Element::int8);
    ArrayParam ids(Element::uuid);
    ArrayParam types(Element::text);
    ArrayParam keys(Element::text);
    ArrayParam names(Element::text);
    ArrayParam payloads(Element::bytea);
    ArrayParam contents(Element::text);
    ArrayParam headers(Element::text);
    ArrayParam created(Element::timestamptz);
    ArrayParam occurred(Element::timestamptz);
    for (const EventView& event : events) {
      seqs.add(event.seq);
      ids.add(event.id);
      types.add(event.aggregate_type);
      keys.add(event.aggregate_id);
      names.add(event.event_type);
      payloads.add(event.payload);
      event.content_type.empty() ? contents.add_null() : contents.add(event.content_type);
      headers.add(event.headers.empty() ? std::string_view("{}") : event.headers);
      created.add_time(event.created_at);
      occurred.add_time(event.occurred_at);
    }
    OUTBOX_TRY(const Rows rows,
               connection_.exec_with(&Queries::flushed, queries_.load,
                                     {replay, seqs.take(), ids.take(), types.take(), keys.take(),
                                      names.take(), payloads.take(), contents.take(),
                                      headers.take(), created.take(), occurred.take()}));
    return rows.size();
  }

  [[nodiscard]] Result<ReplayPage> page(const ReplayRequest& request) override {
    OUTBOX_TRY(Params params, make_params(request));
    const Query& query = request.archived ? queries_.archived_page : queries_.page;
    OUTBOX_TRY(Rows read_rows, read(query, std::move(params)));
    const auto rows = std::make_shared<const Rows>(std::move(read_rows));
    ReplayPage page{.position = request.position};
    for (int row = 0; row < rows->size(); ++row) {
      EventView event = read_view(*rows, row);
      add_parts(event, rows->bytes(row, kPayload), rows->bytes(row, kHeaders));
      page.bytes += static_cast<std::size_t>(rows->int4(row, kBytes));
      page.position = event.seq;
      page.held.push_back(rows->boolean(row, kPageHeld) ? 1 : 0);
      page.events.push_back(event);
    }
    const std::int64_t found = rows->empty() ? 0 : rows->int8(0, kPageFound);
    page.ended = found == rows->size() && std::cmp_less(found, request.rows);
    page.storage = rows;
    return page;
  }

 private:
  [[nodiscard]] Result<Rows> read(const Query& query, Params params = {}) {
    return connection_.exec_with(&Queries::settings, query, std::move(params));
  }

  [[nodiscard]] Result<std::int64_t> begin(const Replay& replay,
                                           std::optional<std::int64_t> id) override {
    std::int64_t begun = 0;
    const auto run = [&]() -> Result<std::int64_t> {
      OUTBOX_TRY(const Rows rows,
                 connection_.exec_with(&Queries::flushed, queries_.start,
                                       {id, replay.subscription, replay.first, replay.last,
                                        replay.filter, replay.archived, replay.actor}));
      begun = rows.is_null(0, 0) ? 0 : rows.int8(0, 0);
      return std::int64_t{begun != 0};
    };
    Status status = start_recorded(replay, id, run);
    if (status) return begun;
    const std::string& origin = status.error().origin;
    if (origin == "pg:OX005" || origin == "pg:23505") return another_is_running();
    if (origin != "pg:OX004") return pass(status);
    OUTBOX_TRY(const RetainedLog log, retained());
    return begins_too_early(replay.first, log);
  }

  [[nodiscard]] static Result<Params> make_params(const ReplayRequest& request) {
    Params params{request.position,
                  request.last,
                  static_cast<std::int64_t>(request.lanes),
                  static_cast<std::int64_t>(request.rows),
                  static_cast<std::int64_t>(request.bytes),
                  request.whole,
                  request.subscription};
    if (request.archived) {
      params.push_back(request.replay);
      return params;
    }
    const Cursor& live = request.live;
    const std::string& newest = live.drained() ? live.s1 : live.s2;
    OUTBOX_TRY(const Snapshot snapshot, parse_snapshot(newest));
    params.push_back(live.s1);
    params.push_back(live.drained() ? Param::null() : Param(live.s2));
    params.push_back(live.position);
    params.push_back(std::to_string(snapshot.xmax));
    return params;
  }

  Connection& connection_;
  const ReplayQueries queries_{connection_.queries().schema};
};

}  // namespace

std::unique_ptr<Replays> make_replays(Connection connection) {
  return std::make_unique<PostgresReplays>(std::make_unique<Connection>(std::move(connection)));
}

}  // namespace outbox::store::postgres
