#include "store/sqlite/replay.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "store/common/replay.hpp"
#include "store/sqlite/clock.hpp"
#include "store/sqlite/event_row.hpp"
#include "store/sqlite/parking.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/queries.hpp"
#include "store/sqlite/replay_queries.hpp"
#include "store/sqlite/seq_at.hpp"
#include "store/text.hpp"

namespace outbox::store::sqlite {
namespace {

constexpr std::int64_t kNoTime = std::numeric_limits<std::int64_t>::min();

Replay replay_of(const Statement& row) {
  return {.id = row.integer(0),
          .subscription = static_cast<std::int32_t>(row.integer(1)),
          .first = row.integer(2),
          .last = row.integer(3),
          .filter = row.text(4),
          .archived = row.integer(5) != 0,
          .state = replay_state_of(row.bytes(6)),
          .actor = row.text(7),
          .reason = row.text(8),
          .started_at_us = row.integer(9),
          .ended_at_us = row.integer(10),
          .position = row.integer(11),
          .sent = row.integer(12),
          .skipped = row.integer(13)};
}

Status settle_one(Connection& connection, const ReplayProgress& progress) {
  Status status = check_owner(connection, progress.subscription, progress.generation);
  if (!status) return status;
  const std::int64_t now = wall_us();
  for (const ReplaySkip& skip : progress.skips) {
    status = connection.run(query::kSkipReplayed, progress.replay, skip.seq, bytes_of(skip.id),
                            storable_text(skip.error));
    if (!status) return status;
  }
  if (!progress.skips.empty()) {
    const std::string reason =
        std::to_string(kMostSkipped) + " events were skipped: the destination rejects too much";
    status = connection.run(query::kStopSkipping, progress.replay, kMostSkipped, reason, now);
    if (!status) return status;
  }
  return connection.run(query::kSettleReplay, progress.replay, progress.position, progress.sent,
                        now);
}

class SqliteReplays final : public Replays {
 public:
  explicit SqliteReplays(Connection connection) : connection_(std::move(connection)) {}

  [[nodiscard]] Result<RetainedLog> retained() override {
    RetainedLog log;
    OUTBOX_TRY(const std::int64_t removed, connection_.integer(query::kRemovedUpTo));
    log.first = removed + 1;
    log.removed = removed > 0;
    OUTBOX_TRY(const Statement row, connection_.query(query::kFirstFrom, log.first));
    if (row.has_row()) log.first_us = row.integer(1);
    OUTBOX_TRY(log.last, connection_.integer(query::kNewestSeq));
    return log;
  }

  [[nodiscard]] Result<std::int64_t> seq_at(std::int64_t time_us) override {
    return sqlite::seq_at(connection_, time_us);
  }

  [[nodiscard]] Result<std::int64_t> start(const Replay& replay) override {
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    if (Status status = may_begin(replay); !status) return pass(status);
    const char* const state =
        to_string(replay.archived ? ReplayState::loading : ReplayState::running);
    std::int64_t id = 0;
    {
      OUTBOX_TRY(Statement row, connection_.query(query::kStartReplay, replay.subscription,
                                                  replay.first, replay.last, replay.filter,
                                                  static_cast<std::int64_t>(replay.archived), state,
                                                  replay.actor, wall_us()));
      id = row.integer(0);
      if (Status status = row.next(); !status) return pass(status);
    }
    if (Status status = transaction.commit(); !status) return pass(status);
    return id;
  }

  [[nodiscard]] Result<std::int64_t> load(std::int64_t replay,
                                          std::span<const EventView> events) override {
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    std::int64_t added = 0;
    for (const EventView& event : events) {
      Status status = connection_.run(
          query::kLoadEvent, replay, event.seq, bytes_of(event.id), event.aggregate_type,
          event.aggregate_id, event.event_type, event.payload, event.content_type,
          event.headers.empty() ? std::string_view("{}") : event.headers, event.created_at_us,
          event.occurred_at_us.value_or(kNoTime), kNoTime);
      if (!status) return pass(status);
      added += connection_.changes();
    }
    if (Status status = transaction.commit(); !status) return pass(status);
    return added;
  }

  [[nodiscard]] Status loaded(std::int64_t replay) override {
    return connection_.run(query::kReplayLoaded, replay);
  }

  [[nodiscard]] Result<bool> stop(std::int64_t replay, std::string_view reason) override {
    Status status = connection_.run(query::kStopReplay, replay, reason, wall_us());
    if (status && connection_.changes() == 0) status = connection_.run(query::kDropReplay, replay);
    if (!status) return pass(status);
    return connection_.changes() > 0;
  }

  [[nodiscard]] Status resume(std::int64_t replay) override {
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    OUTBOX_TRY(const auto found, find(replay));
    if (!found || found->state != ReplayState::stopped) return not_stopped(replay);
    if (Status status = may_begin(*found); !status) return status;
    if (Status status = connection_.run(query::kResumeReplay, replay); !status) return status;
    return transaction.commit();
  }

  [[nodiscard]] Result<std::vector<Replay>> list(std::int32_t subscription,
                                                 std::size_t limit) override {
    return list_of(0, subscription, limit);
  }

  [[nodiscard]] Result<std::optional<Replay>> find(std::int64_t replay) override {
    OUTBOX_TRY(auto all, list_of(replay, 0, 1));
    return all.empty() ? std::nullopt : std::optional(std::move(all.front()));
  }

  [[nodiscard]] Result<std::vector<ReplaySkip>> skips(std::int64_t replay,
                                                      std::size_t limit) override {
    OUTBOX_TRY(Statement row,
               connection_.query(query::kReplaySkips, replay, static_cast<std::int64_t>(limit)));
    std::vector<ReplaySkip> all;
    while (row.has_row()) {
      ReplaySkip skip{.seq = row.integer(0),
                      .error = row.text(2),
                      .aggregate_type = row.text(3),
                      .aggregate_id = row.text(4)};
      const std::string_view id = row.bytes(1);
      std::memcpy(skip.id.bytes.data(), id.data(), std::min(id.size(), skip.id.bytes.size()));
      all.push_back(std::move(skip));
      if (Status status = row.next(); !status) return pass(status);
    }
    return all;
  }

  [[nodiscard]] Result<std::vector<ReplayPlace>> places(const Replay& replay,
                                                        LaneMask lanes) override {
    OUTBOX_TRY(const auto now, find(replay.id));
    const std::int64_t position = now ? now->position : replay.first - 1;
    return std::vector<ReplayPlace>{{.lanes = lanes, .position = position}};
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
      EventView event = view_of(row);
      const std::size_t size = size_of_texts(event);
      cut = !page.events.empty() && page.bytes + size > request.bytes;
      if (cut) break;
      page.bytes += size;
      page.position = event.seq;
      page.held.push_back(row.integer(kFirstExtra) != 0 ? 1 : 0);
      keep(event, size, *memory);
      page.events.push_back(event);
      if (Status status = row.next(); !status) return pass(status);
    }
    page.ended = !cut && page.events.size() < request.rows;
    page.storage = std::move(memory);
    return page;
  }

 private:
  /// In the transaction: nobody removes history meanwhile.
  [[nodiscard]] Status may_begin(const Replay& replay) {
    {
      OUTBOX_TRY(const Statement row,
                 connection_.query(query::kRunningReplay, replay.subscription));
      if (row.has_row()) return another_is_running();
    }
    if (replay.archived) return {};
    OUTBOX_TRY(const RetainedLog log, retained());
    if (replay.first < log.first) return begins_too_early(replay.first, log);
    return {};
  }

  [[nodiscard]] Result<std::vector<Replay>> list_of(std::int64_t id, std::int32_t subscription,
                                                    std::size_t limit) {
    OUTBOX_TRY(Statement row, connection_.query(query::kListReplays, id, subscription,
                                                static_cast<std::int64_t>(limit)));
    std::vector<Replay> all;
    while (row.has_row()) {
      all.push_back(replay_of(row));
      if (Status status = row.next(); !status) return pass(status);
    }
    return all;
  }

  Connection connection_;
};

}  // namespace

Status settle_replays(Connection& connection, std::span<const ReplayProgress> replays) {
  for (const ReplayProgress& progress : replays) {
    if (Status status = settle_one(connection, progress); !status) return status;
  }
  return {};
}

std::unique_ptr<Replays> make_replays(Connection connection) {
  return std::make_unique<SqliteReplays>(std::move(connection));
}

}  // namespace outbox::store::sqlite
