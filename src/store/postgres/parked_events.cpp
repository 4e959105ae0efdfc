// Parked events for people. The functions are in 0004_parking.sql.
#include "store/parked_events.hpp"

#include <memory>
#include <utility>

#include "base/error.hpp"
#include "store/common/parked_edit.hpp"
#include "store/common/subscription.hpp"
#include "store/postgres/parts.hpp"

namespace outbox::store::postgres {
namespace {

Params params_of(const ParkedFilter& filter, std::size_t limit, bool whole) {
  return {filter.subscription ? Param(*filter.subscription) : Param::null(),
          filter.state ? Param(to_string(*filter.state)) : Param::null(),
          Param::text_or_null(filter.aggregate_type),
          Param::text_or_null(filter.aggregate_id),
          Param::text_or_null(filter.error),
          filter.id ? Param(*filter.id) : Param::null(),
          Param(filter.seq),
          Param(static_cast<std::int64_t>(limit)),
          Param(whole),
          Param::text_or_null(filter.event_type),
          filter.scheduled ? Param(*filter.scheduled) : Param::null(),
          Param(filter.after ? filter.after->first : 0),
          Param(filter.after ? filter.after->second : 0)};
}

ParkedListing parked_listing_of(const Rows& rows, int row) {
  ParkedListing listing{.subscription = rows.int4(row, 0),
                        .seq = rows.int8(row, 1),
                        .id = rows.uuid(row, 2),
                        .aggregate_type = rows.text(row, 3),
                        .aggregate_id = rows.text(row, 4),
                        .event_type = rows.text(row, 5),
                        .state = parked_state_of(rows.bytes(row, 6)),
                        .attempts = static_cast<std::size_t>(rows.int4(row, 7)),
                        .error = rows.text(row, 8),
                        .parked_at_us = rows.time_us(row, 9),
                        .next_attempt_at_us = rows.time_us(row, 10),
                        .created_at_us = rows.time_us(row, 14),
                        .scheduled = rows.boolean(row, 15),
                        .worker = rows.text(row, 16),
                        .progress = rows.text(row, 19),
                        .payload = rows.text(row, 11),
                        .content_type = rows.text(row, 12),
                        .headers = rows.text(row, 13)};
  if (!rows.is_null(row, 17)) listing.begun_at_us = rows.time_us(row, 17);
  if (!rows.is_null(row, 18)) listing.percent = rows.int2(row, 18);
  return listing;
}

class PostgresParkedEvents final : public ParkedEvents {
 public:
  explicit PostgresParkedEvents(Connection connection) : connection_(std::move(connection)) {}

  [[nodiscard]] Result<std::vector<ParkedListing>> list(const ParkedFilter& filter,
                                                        std::size_t limit, bool whole) override {
    OUTBOX_TRY(const Rows rows,
               connection_.exec_with(&Queries::plan_settings, &Queries::list_parked,
                                     params_of(filter, limit, whole)));
    std::vector<ParkedListing> all;
    for (int row = 0; row < rows.size(); ++row) all.push_back(parked_listing_of(rows, row));
    return all;
  }

  [[nodiscard]] Result<ParkedCounts> counts(std::int32_t subscription) override {
    OUTBOX_TRY(const Rows rows, connection_.exec(&Queries::count_parked, {Param(subscription)}));
    return ParkedCounts{
        .retrying = rows.int8(0, 0), .waiting = rows.int8(0, 1), .dead = rows.int8(0, 2)};
  }

  [[nodiscard]] Result<std::size_t> retry(std::int32_t subscription,
                                          std::span<const std::int64_t> seqs,
                                          bool keep_attempts) override {
    return change(&Queries::retry_parked,
                  {Param(subscription), Param::int8_array(seqs), Param(keep_attempts)});
  }

  [[nodiscard]] Result<std::size_t> discard(std::int32_t subscription,
                                            std::span<const std::int64_t> seqs,
                                            std::string_view actor,
                                            std::string_view reason) override {
    return change(&Queries::discard_parked,
                  {Param(subscription), Param::int8_array(seqs), Param(std::string(actor)),
                   Param(std::string(reason))});
  }

  [[nodiscard]] Status edit(const ParkedEdit& edit) override {
    OUTBOX_TRY(const Rows rows,
               connection_.exec_with(
                   &Queries::flushed, &Queries::edit_parked,
                   {edit.subscription, edit.seq, edit.id, edit.new_id, edit.event_type,
                    Param::borrowed(edit.payload), Param::text_or_null(edit.content_type),
                    edit.headers, edit.actor, edit.reason}));
    return edit_status(rows.bytes(0, 0), edit);
  }

 private:
  /// It must survive a crash of the database: the relay may act on it.
  [[nodiscard]] Result<std::size_t> change(Connection::Named query, Params params) {
    OUTBOX_TRY(const Rows rows, connection_.exec_with(&Queries::flushed, query, std::move(params)));
    return static_cast<std::size_t>(rows.int4(0, 0));
  }

  Connection connection_;
};

}  // namespace

std::unique_ptr<ParkedEvents> make_parked_events(Connection connection) {
  return std::make_unique<PostgresParkedEvents>(std::move(connection));
}

}  // namespace outbox::store::postgres
