#include "support/ledger_check.hpp"

#include <outbox/event.hpp>

#include "event/key.hpp"

namespace outbox::test {
namespace {

struct Place {
  std::string s1;
  std::string s2;  ///< Empty: everything in s1 is settled, and no pair has begun.
  std::string position;
  bool operator==(const Place&) const = default;
};

std::string text_of(const Place& place) {
  return place.s1 + " | " + place.s2 + " | " + place.position;
}

Place end_of(const std::string& s1, const std::string& s2, const std::string& position) {
  if (position.empty()) return {.s1 = s2.empty() ? s1 : s2, .s2 = {}, .position = {}};
  return {.s1 = s1, .s2 = s2, .position = position};
}

std::uint64_t as_unsigned(const std::string& text) {
  return static_cast<std::uint64_t>(std::stoll(text));
}

struct Sum {
  std::uint64_t count{0};
  std::uint64_t hash{0};
  bool operator==(const Sum&) const = default;
};

Sum sum_of_ids(const std::vector<PgRow>& rows) {
  Sum sum;
  for (const PgRow& row : rows) {
    ++sum.count;
    sum.hash += event::id_hash(EventId::parse(*row[0]).value());
  }
  return sum;
}

/// What was parked is parked still, or has an end; what ended by being delivered is settled.
std::string parked_fault(Pg& connection, const std::string& subscription, const Sum& parked) {
  const std::string of =
      " WHERE subscription = (SELECT id FROM outbox.subscription WHERE name = $1)";
  const Sum rows = sum_of_ids(connection.exec(
      "SELECT id FROM outbox.parked" + of + " UNION ALL SELECT id FROM outbox.parked_end" + of,
      {subscription}));
  if (!(rows == parked))
    return "parked " + std::to_string(parked.count) + " events, but there are " +
           std::to_string(rows.count) + " rows, or others";
  Sum retried;
  for (const PgRow& row : connection.exec(
           "SELECT acked, acked_hash FROM outbox.settlement" + of + " AND kind = 'retry'",
           {subscription})) {
    retried.count += as_unsigned(*row[0]);
    retried.hash += as_unsigned(*row[1]);
  }
  const Sum delivered = sum_of_ids(connection.exec(
      "SELECT id FROM outbox.parked_end" + of + " AND outcome = 'delivered'", {subscription}));
  return retried == delivered ? "" : "the settlements of retries differ from what was delivered";
}

}  // namespace

std::string ledger_fault(Pg& connection, const std::string& subscription) {
  const auto rows = connection.exec(
      "SELECT id, kind, generation, s1::text, coalesce(s2::text, ''), from_position, coalesce(position::text, ''), acked, "
      "acked_hash, filtered, filtered_hash, parked, parked_hash FROM outbox.settlement WHERE lanes <> 0 AND subscription = "
      "(SELECT id FROM outbox.subscription WHERE name = $1) ORDER BY id",
      {subscription});
  if (rows.empty()) return "no settlement";
  Place cursor;
  std::int64_t generation = -1;
  std::uint64_t count = 0;
  std::uint64_t hash = 0;
  Sum parked;
  for (const PgRow& row : rows) {
    const std::string name = "settlement " + *row[0] + " (" + *row[1] + ")";
    const std::int64_t row_generation = std::stoll(*row[2]);
    if (row_generation < generation) continue;  // written by a relay that had lost its lanes
    const Place end = end_of(*row[3], *row[4], *row[6]);
    if (*row[1] != "settle") {
      if (generation >= 0 && !(end == cursor))
        return name + " does not stand at the cursor " + text_of(cursor) + ": " + text_of(end);
      cursor = end;
      generation = row_generation;
      continue;
    }
    const bool follows = cursor.s2.empty() ? *row[3] == cursor.s1 && *row[5] == "0"
                                           : *row[3] == cursor.s1 && *row[4] == cursor.s2 &&
                                                 *row[5] == cursor.position;
    if (!follows) return name + " does not start at the cursor " + text_of(cursor);
    cursor = end;
    count += as_unsigned(*row[7]) + as_unsigned(*row[9]) + as_unsigned(*row[11]);
    hash += as_unsigned(*row[8]) + as_unsigned(*row[10]) + as_unsigned(*row[12]);
    parked.count += as_unsigned(*row[11]);
    parked.hash += as_unsigned(*row[12]);
  }
  std::uint64_t events = 0;
  std::uint64_t wanted = 0;
  for (const PgRow& row : connection.exec("SELECT id FROM outbox.event")) {
    ++events;
    wanted += event::id_hash(EventId::parse(*row[0]).value());
  }
  if (count != events)
    return "settled " + std::to_string(count) + " events of " + std::to_string(events);
  if (hash != wanted) return "the hash sums differ";
  return parked_fault(connection, subscription, parked);
}

}  // namespace outbox::test
