// Parked events for people: what both stores read in the same way.
#include <algorithm>

#include "store/sql/parts.hpp"
#include "store/stored_subscription.hpp"

namespace outbox::store::sql {
namespace {

ParkedListing read_parked(Row row) {
  ParkedListing listing;
  std::string state;
  row.read(listing.subscription, listing.seq, listing.id, listing.aggregate_type,
           listing.aggregate_id, listing.event_type, state, listing.attempts, listing.error,
           listing.parked_at_us, listing.next_attempt_at_us, listing.payload, listing.content_type,
           listing.headers, listing.created_at_us, listing.scheduled, listing.worker,
           listing.begun_at_us, listing.percent, listing.progress);
  listing.state = parse_parked_state(state);
  return listing;
}

}  // namespace

Result<std::vector<ParkedListing>> ParkedEvents::list(const ParkedFilter& filter, std::size_t limit,
                                                      bool whole) {
  // The list begins with the first event of the subscription, or of any subscription.
  std::pair<std::int32_t, std::int64_t> after(filter.subscription.value_or(-1), -1);
  if (filter.after) after = std::max(after, *filter.after);
  OUTBOX_TRY(const Rows rows,
             db_->exec(filter.id ? &Statements::find_parked : &Statements::list_parked,
                       {or_null(filter.subscription),
                        text_or_null(filter.state ? to_string(*filter.state) : ""),
                        text_or_null(filter.aggregate_type), text_or_null(filter.aggregate_id),
                        text_or_null(filter.error), or_null(filter.id), or_null(filter.seq),
                        static_cast<std::int64_t>(limit), whole, text_or_null(filter.event_type),
                        or_null(filter.scheduled), after.first, after.second}));
  return rows.list(read_parked);
}

Result<ParkedCounts> count_parked(Connection& connection, std::int32_t subscription) {
  OUTBOX_TRY(const Rows rows, connection.exec(&Statements::count_parked, {subscription}));
  ParkedCounts counts;
  rows[0].read(counts.retrying, counts.waiting, counts.dead);
  return counts;
}

Status edit_status(std::string_view word, const ParkedEdit& edit) {
  if (word == "edited") return {};
  const std::string event = edit.id.str() + " (seq " + std::to_string(edit.seq) + ")";
  if (word == "waiting") {
    return fail(Errc::invalid_argument, event + " waits behind an earlier event of its key",
                "edit, retry or discard that one first; outbox events --id shows which");
  }
  if (word == "due") {
    return fail(Errc::unavailable, Remedy::retry_call,
                event + " is due, and a relay may be sending it: nothing was changed",
                "try again in a moment, when that attempt is over");
  }
  return fail(Errc::not_found, event + " is no longer parked",
              "it was delivered, discarded or edited meanwhile; outbox events --id shows which");
}

}  // namespace outbox::store::sql
