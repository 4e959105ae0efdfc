// Replays of events in a SQLite file.
#include "store/replay.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "event/time_text.hpp"
#include "store/sql/audit.hpp"
#include "store/sql/parts.hpp"
#include "store/sqlite/clock.hpp"
#include "store/sqlite/event_row.hpp"
#include "store/sqlite/parking.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/queries.hpp"
#include "store/text.hpp"

namespace outbox::store::sqlite {
namespace {

constexpr std::int64_t kNoTime = std::numeric_limits<std::int64_t>::min();

Status settle_one(Connection& connection, const ReplayProgress& progress) {
  OUTBOX_TRY(check_owner(connection, progress.subscription, progress.generation));
  const std::int64_t now = wall_us();
  for (const ReplaySkip& skip : progress.skips) {
    OUTBOX_TRY(connection.run(query::kSkipReplayed, progress.replay, skip.seq, to_bytes(skip.id),
                              storable_text(skip.error)));
  }
  if (!progress.skips.empty()) {
    const std::string reason =
        std::to_string(kMostSkipped) + " events were skipped: the destination rejects too much";
    OUTBOX_TRY(connection.run(query::kStopSkipping, progress.replay, kMostSkipped, reason, now));
  }
  return connection.run(query::kSettleReplay, progress.replay, progress.position, progress.sent,
                        now);
}

class SqliteReplays final : public sql::Replays {
 public:
  explicit SqliteReplays(std::unique_ptr<Connection> connection)
      : sql::Replays(std::move(connection)), connection_(static_cast<Connection&>(db())) {}

  [[nodiscard]] Result<std::int64_t> seq_at(std::int64_t time_us) override {
    return sqlite::seq_at(connection_, time_us);
  }

  [[nodiscard]] Result<std::int64_t> load(std::int64_t replay,
                                          std::span<const EventView> events) override {
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    std::int64_t added = 0;
    for (const EventView& event : events) {
      OUTBOX_TRY(connection_.run(
          query::kLoadEvent, replay, event.seq, to_bytes(event.id), event.aggregate_type,
          event.aggregate_id, event.event_type, event.payload, event.content_type,
          event.headers.empty() ? std::string_view("{}") : event.headers,
          event::to_us(event.created_at),
          event.occurred_at ? event::to_us(*event.occurred_at) : kNoTime, kNoTime));
      added += connection_.changes();
    }
    OUTBOX_TRY(transaction.commit());
    return added;
  }

  [[nodiscard]] Result<ReplayPage> page(const ReplayRequest& request) override {
    const std::int64_t last =
        request.archived ? request.last : std::min(request.last, request.live.position);
    OUTBOX_TRY(Statement row,
               connection_.query(request.archived ? query::kArchivedPage : query::kReplayPage,
                                 request.position, last, static_cast<std::int64_t>(request.rows),
                                 request.subscription, request.replay));
    auto memory = std::make_shared<EventMemory>(kFirstPiece);
    ReplayPage page{.position = request.position};
    bool cut = false;
    while (row.has_row()) {
      EventView event = read_view(row);
      const std::size_t size = size_of_texts(event);
      cut = !page.events.empty() && page.bytes + size > request.bytes;
      if (cut) break;
      page.bytes += size;
      page.position = event.seq;
      page.held.push_back(row.integer(kFirstExtra) != 0 ? 1 : 0);
      keep(event, size, *memory);
      page.events.push_back(event);
      OUTBOX_TRY(row.next());
    }
    page.ended = !cut && page.events.size() < request.rows;
    page.storage = std::move(memory);
    return page;
  }

 private:
  [[nodiscard]] Result<std::int64_t> begin(const Replay& replay,
                                           std::optional<std::int64_t> id) override {
    if (id && replay.state != ReplayState::stopped) return 0;
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    OUTBOX_TRY(const std::int64_t begun, begin_here(replay, id));
    // loaded() records a new one whose events are copied from an archive.
    if (begun != 0 && (!replay.archived || id)) {
      OUTBOX_TRY(sql::record(connection_, {.id = replay.subscription}, 1));
    }
    OUTBOX_TRY(transaction.commit());
    return begun;
  }

  /// Must be called in a transaction. Returns the id, or 0.
  [[nodiscard]] Result<std::int64_t> begin_here(const Replay& replay,
                                                std::optional<std::int64_t> id) {
    OUTBOX_TRY(may_begin(replay));
    const char* const state =
        to_string(replay.archived ? ReplayState::loading : ReplayState::running);
    OUTBOX_TRY(Statement row, id ? connection_.query(query::kResumeReplay, *id)
                                 : connection_.query(query::kStartReplay, replay.subscription,
                                                     replay.first, replay.last, replay.filter,
                                                     static_cast<std::int64_t>(replay.archived),
                                                     state, replay.actor, wall_us()));
    const std::int64_t begun = row.has_row() ? row.integer(0) : 0;
    OUTBOX_TRY(row.next());
    return begun;
  }

  /// Must be called in the transaction, so that nobody removes history meanwhile.
  [[nodiscard]] Status may_begin(const Replay& replay) {
    OUTBOX_TRY(const sql::Rows running,
               connection_.exec(&sql::Statements::running_replay, {replay.subscription}));
    if (running.first<bool>()) return another_is_running();
    if (replay.archived) return {};
    OUTBOX_TRY(const RetainedLog log, retained());
    if (replay.first < log.first) return begins_too_early(replay.first, log);
    return {};
  }

  Connection& connection_;
};

}  // namespace

Status settle_replays(Connection& connection, std::span<const ReplayProgress> replays) {
  for (const ReplayProgress& progress : replays) {
    OUTBOX_TRY(settle_one(connection, progress));
  }
  return {};
}

std::unique_ptr<Replays> make_replays(Connection connection) {
  return std::make_unique<SqliteReplays>(std::make_unique<Connection>(std::move(connection)));
}

}  // namespace outbox::store::sqlite
