#include "support/ledger_check.hpp"

#include <array>
#include <optional>
#include <outbox/event.hpp>

#include "event/key.hpp"

namespace outbox::test {
namespace {

struct Place {
  std::string s1;
  std::string s2;  ///< Empty if everything in s1 is settled and no pair has begun.
  std::string position;
  bool operator==(const Place&) const = default;
};

std::string to_text(const Place& place) {
  return place.s1 + " | " + place.s2 + " | " + place.position;
}

Place make_end(const std::string& s1, const std::string& s2, const std::string& position) {
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

/// Says what is wrong with parked events. What was parked must still be parked, or have an end.
/// What was delivered in the end must be settled.
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

/// A settlement that counts, and the lanes in which it still counts.
struct Counted {
  std::string name;
  std::uint64_t lanes{0};
  std::uint64_t left{0};
  Place start;
  Sum all;
  Sum parked;
};

/// Walks over the settlements of a subscription in the order of their ids. Each settlement must
/// continue every one of its lanes. A settlement of a lower generation than the lane's is void. A
/// claim may set a lane back; what was settled beyond it is void then.
class Walk {
 public:
  std::optional<std::string> add(const PgRow& row) {
    const std::string name = "settlement " + *row[0] + " (" + *row[1] + ")";
    const std::uint64_t mask = as_unsigned(*row[13]);
    const std::int64_t generation = std::stoll(*row[2]);
    const Place end = make_end(*row[3], *row[4], *row[6]);
    const bool settles = *row[1] == "settle";
    const Place start = *row[5] == "0" ? Place{.s1 = *row[3], .s2 = {}, .position = {}}
                                       : Place{.s1 = *row[3], .s2 = *row[4], .position = *row[5]};
    std::uint64_t live = 0;
    for (std::size_t n = 0; n < lanes_.size(); ++n) {
      if ((mask >> n & 1U) == 0 || generation < lanes_[n].generation) continue;
      live |= std::uint64_t{1} << n;
      Lane& lane = lanes_[n];
      if (!settles && !set_back(lane, n, end))
        return name + " does not stand at a cursor of lane " + std::to_string(n);
      if (settles && !(start == lane.cursor))
        return name + " does not start at the cursor of lane " + std::to_string(n) + " " +
               to_text(lane.cursor);
      lane.cursor = end;
      lane.generation = generation;
      if (settles) lane.rows.push_back(rows_.size());
    }
    if (live != 0 && live != mask) return name + " counts for some of its lanes only";
    if (settles && live != 0)
      rows_.push_back(
          {.name = name,
           .lanes = mask,
           .left = mask,
           .start = start,
           .all = {as_unsigned(*row[7]) + as_unsigned(*row[9]) + as_unsigned(*row[11]),
                   as_unsigned(*row[8]) + as_unsigned(*row[10]) + as_unsigned(*row[12])},
           .parked = {as_unsigned(*row[11]), as_unsigned(*row[12])}});
    return std::nullopt;
  }
  /// Sums up the settlements that count, or returns what is wrong.
  std::optional<std::string> sum(Sum& all, Sum& parked) const {
    for (const Counted& row : rows_) {
      if (row.left != 0 && row.left != row.lanes)
        return row.name + " was set back in some of its lanes only";
      if (row.left == 0) continue;
      all = {all.count + row.all.count, all.hash + row.all.hash};
      parked = {parked.count + row.parked.count, parked.hash + row.parked.hash};
    }
    return std::nullopt;
  }

 private:
  struct Lane {
    Place cursor;
    std::int64_t generation{-1};
    std::vector<std::size_t> rows;
  };

  bool set_back(Lane& lane, std::size_t n, const Place& to) {
    while (lane.generation >= 0 && !(lane.cursor == to) && !lane.rows.empty()) {
      Counted& row = rows_[lane.rows.back()];
      lane.rows.pop_back();
      row.left &= ~(std::uint64_t{1} << n);
      lane.cursor = row.start;
    }
    return lane.generation < 0 || lane.cursor == to;
  }

  std::array<Lane, 64> lanes_;
  std::vector<Counted> rows_;
};

}  // namespace

std::string ledger_fault(Pg& connection, const std::string& subscription) {
  const auto rows = connection.exec(
      "SELECT id, kind, generation, s1::text, coalesce(s2::text, ''), from_position, coalesce(position::text, ''), acked, "
      "acked_hash, filtered, filtered_hash, parked, parked_hash, lanes FROM outbox.settlement WHERE lanes <> 0 AND subscription = "
      "(SELECT id FROM outbox.subscription WHERE name = $1) ORDER BY id",
      {subscription});
  if (rows.empty()) return "no settlement";
  Walk walk;
  for (const PgRow& row : rows) {
    if (auto fault = walk.add(row)) return *fault;
  }
  Sum settled;
  Sum parked;
  if (auto fault = walk.sum(settled, parked)) return *fault;
  std::uint64_t events = 0;
  std::uint64_t wanted = 0;
  for (const PgRow& row : connection.exec("SELECT id FROM outbox.event")) {
    ++events;
    wanted += event::id_hash(EventId::parse(*row[0]).value());
  }
  if (settled.count != events)
    return "settled " + std::to_string(settled.count) + " events of " + std::to_string(events);
  if (settled.hash != wanted) return "the hash sums differ";
  return parked_fault(connection, subscription, parked);
}

}  // namespace outbox::test
